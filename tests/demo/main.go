// Command oneway-demo runs the whole product on one machine: an emulated link with the parameters of a paper, two
// agents that measure it with real packets and kernel timestamps, a real Prometheus with the rules, and a table that
// compares the measured values with the link's log of the same packets and with the configuration.
//
// It needs no configuration and sends nothing outside its own namespaces. It stops everything that it started.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/tests/lab"
)

// Exit statuses.
const (
	exitFailed     = 1 // the demo itself failed
	exitUsage      = 2
	exitOutside    = 3 // values outside of their bound and tolerance
	exitUnreported = 4 // none outside, but values that the agents do not report
)

const help = `An emulated link, two agents, Prometheus, and a table: what the link was configured to do, what its log says that it did to the same packets, and what was measured.

Exit status: 0 all values are told and within their bound and tolerance of the truth; 3 some are outside; 4 none is outside, but some are not told, each with its reason; 1 the demo itself failed; 2 wrong usage. The last line on stderr names the values.`

type options struct {
	profile, report, binary string
	exit                    bool
	measure                 time.Duration
	seed                    uint64
}

func main() { os.Exit(lab.Main(runDemo)) }

func parse(args []string) (o options, err error) {
	app := kingpin.New("oneway-demo", help)
	app.HelpFlag.Short('h')
	app.Flag("profile", "Built-in profile ("+strings.Join(lab.ProfileNames(), ", ")+") or a YAML file.").Default("wibro").StringVar(&o.profile)
	app.Flag("report", "Where the table is written as JSON; reports and logs are kept beside it.").Default("build/demo/report.json").StringVar(&o.report)
	app.Flag("oneway", "The program to show.").Default("build/oneway").StringVar(&o.binary)
	app.Flag("measure", "How long the path is measured without load: the window of the light probe, 10s to 10m.").Default("40s").DurationVar(&o.measure)
	app.Flag("seed", "Seed of the link's faults.").Default("1").Uint64Var(&o.seed)
	app.Flag("exit", "End after the table; otherwise all stays up until interrupted.").BoolVar(&o.exit)
	if _, err = app.Parse(args); err == nil && (o.measure < 10*time.Second || o.measure > 10*time.Minute) {
		err = fmt.Errorf("--measure is %v; it must be 10s to 10m", o.measure)
	}
	return o, err
}

func runDemo() int {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "oneway-demo:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rows, err := show(ctx, o)
	code, last := verdict(rows, err, ctx.Err() != nil)
	if last != "" {
		fmt.Fprintln(os.Stderr, "oneway-demo:", last)
	}
	return code
}

// verdict is the exit status, and the last line on stderr, which is empty if all is well.
func verdict(rows []row, err error, interrupted bool) (code int, last string) {
	var words []string
	wrong, unreported := outside(rows), with(rows, statusUnreported)
	if len(wrong) > 0 {
		code = exitOutside
		words = append(words, "outside: "+strings.Join(wrong, ", "))
	}
	if len(unreported) > 0 {
		if code == 0 {
			code = exitUnreported
		}
		words = append(words, "unreported: "+strings.Join(unreported, ", "))
	}
	if err != nil && (!interrupted || !errors.Is(err, context.Canceled)) {
		code = exitFailed
		// One line, even for joined errors.
		words = append([]string{strings.ReplaceAll(err.Error(), "\n", "; ")}, words...)
	}
	return code, strings.Join(words, "; ")
}

// show starts everything, prints the table, and stops everything. The rows are returned with an error, too.
func show(ctx context.Context, o options) (rows []row, err error) {
	profile, err := lab.LoadProfile(o.profile)
	if err != nil {
		return nil, err
	}
	if err := lab.Available(); err != nil {
		return nil, fmt.Errorf("the emulated link needs root, or a kernel that lets users make namespaces: %w", err)
	}
	step("raising the link %q: forward %s, reverse %s", profile.Name, describe(profile.Forward), describe(profile.Reverse))
	var logTCP atomic.Bool
	network, err := lab.New(lab.Options{Profile: profile, Seed: o.seed, Classifier: classifier(), Segments: segments(&logTCP)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	stack, err := raise(ctx, network, profile, o)
	defer func() { err = errors.Join(err, stack.stop()) }()
	if err != nil {
		return nil, err
	}
	stack.logTCP = &logTCP
	rows, err = stack.rows(ctx, profile)
	err = errors.Join(append([]error{err, network.Err()}, stack.failures...)...)
	err = errors.Join(err, stack.keep(ctx), writeReport(o.report, rows), stack.print(os.Stdout, profile.Name, rows))
	stack.where(os.Stdout, o.report)
	if err != nil || ctx.Err() != nil {
		return rows, err
	}
	if err := stack.judge(ctx, len(with(rows, statusUnreported)) > 0); err != nil {
		return rows, err
	}
	if !o.exit {
		stack.announce(os.Stdout)
		<-ctx.Done()
	}
	return rows, nil
}

// rows are those of all probes; with an error they are returned, too, without the values that it prevented.
func (s *stack) rows(ctx context.Context, profile lab.Profile) (rows []row, err error) {
	err = s.wait(ctx)
	rows = s.lightRows(ctx, profile)
	if !limited(profile) {
		return rows, err
	}
	full, failure := s.load(ctx, profile)
	return append(rows, full...), errors.Join(err, failure)
}

func (s *stack) print(out io.Writer, profile string, rows []row) error {
	_, err := s.trainTable.WriteTo(out)
	return errors.Join(err, s.printSweep(out, rows), printTable(out, profile, rows))
}

func step(format string, args ...any) { fmt.Printf("-- "+format+"\n", args...) }

func describe(l lab.Link) string {
	rate := "unlimited"
	if mean := l.MeanRate(); mean > 0 {
		rate = fmt.Sprintf("%.3g Mb/s", float64(mean)/1e6)
	}
	if len(l.Trace) > 0 {
		rate += " in the mean"
	}
	return fmt.Sprintf("%s, %v, loss %g %%", rate, l.Delay, 100*l.Loss)
}
