package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/loan"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sched"
)

const testHelp = `Run a heavy test now, from the terminal: fill the link and learn its rate and
queue (saturate), measure sizes by rates (matrix), or its capacity by packet trains (train).

The far end must run a responder ("oneway respond", or an agent with the section
responder), and have made a token for this client ("oneway token new").

Where an agent runs on this host, it lends the test its link: it says so, none of its own
tests runs on that link meanwhile, what is sent counts in the link's budget of the day, and
oneway_test_running is 1, so that alerts wait. The agent listens at a UNIX socket for root,
its own user, and the group that its flag --test.socket-group names. Which link: that of the
agent's own test to the same far end, or the one that it has; else --link says it. An agent
that ends meanwhile ends no test. Where none runs, the test runs alone, and says so.

Examples:
  sudo oneway test saturate 192.0.2.7 --token-file token --wait 5m
  sudo oneway test train 192.0.2.7 --token-file token --link uplink
  oneway test train 192.0.2.7 --token-file token --no-agent`

// testFlags are what all heavy tests take.
type testFlags struct {
	directions string
	json       bool
	noAgent    bool
	socket     string
	options    heavy.Options
	clock      clockFlags
}

// testKind is one kind of test on the command line: kind checks its own flags, print
// writes what it found besides the summary.
type testKind struct {
	word  string
	kind  func(probe.Env, probe.Target, heavy.Options) (heavy.Kind, error)
	print func(out io.Writer, body any) error
}

func testCommand(app *kingpin.Application) {
	parent := app.Command("test", testHelp)
	for _, register := range []func(*kingpin.CmdClause){testSaturateCommand, testMatrixCommand, testTrainCommand} {
		register(parent)
	}
}

// both is what --direction says if nothing is said.
const both = "both"

func (f *testFlags) register(cmd *kingpin.CmdClause, k testKind) {
	f.options = heavy.DefaultOptions()
	o := &f.options
	cmd.Arg("host", "Responder: name or address, with an optional :port (8620).").Required().StringVar(&o.Responder)
	cmd.Flag("token-file", "File with the token that the responder's owner gave you.").Required().PlaceHolder("FILE").StringVar(&o.TokenFile)
	cmd.Flag("pin", "sha256:... of the responder's key, as it prints it.").PlaceHolder("PIN").StringVar(&o.Pin)
	cmd.Flag("ca-file", "Certificates (PEM) that sign the responder's; without this and --pin, the system's.").PlaceHolder("FILE").StringVar(&o.CAFile)
	cmd.Flag("cert-file", "This client's certificate (PEM), if the responder wants one.").PlaceHolder("FILE").StringVar(&o.CertFile)
	cmd.Flag("key-file", "Its key (PEM).").PlaceHolder("FILE").StringVar(&o.KeyFile)
	cmd.Flag("direction", "forward (to the responder), reverse or both, one after the other.").Default(both).EnumVar(&f.directions, both, "forward", "reverse")
	cmd.Flag("dscp", "DiffServ code point, 0..63.").IntVar(&o.DSCP)
	cmd.Flag("family", "any, ipv4 or ipv6.").Default("any").EnumVar(&o.Family, "any", "ipv4", "ipv6")
	cmd.Flag("local", "Address to send from.").StringVar(&o.Local)
	cmd.Flag("no-checksum", "Leave the UDP checksum out (IPv4), so that damaged packets arrive and are seen.").BoolVar(&o.NoChecksum)
	cmd.Flag("link", "The link that it fills, by its name in the configuration of this host's agent; without it, the agent finds it.").PlaceHolder("NAME").StringVar(&o.Link)
	cmd.Flag("agent-socket", "Where the agent of this host lends links.").Default(loan.DefaultSocket).PlaceHolder("PATH").StringVar(&f.socket)
	cmd.Flag("no-agent", "Do not ask the agent of this host: the test may run beside the agent's own on one link, so that neither tells the truth, the budget does not count it, and alerts do not wait for it.").BoolVar(&f.noAgent)
	cmd.Flag("wait", "How long to wait for the link, here or at the responder, while another test has it.").Default("10s").DurationVar(&o.MaxWait)
	cmd.Flag("drain", "How long after the last packet others are waited for; longer than the link's queue.").Default("5s").DurationVar(&o.DrainTimeout)
	cmd.Flag("json", "Print the whole result as JSON, with a row a packet.").BoolVar(&f.json)
	f.clock.register(cmd)
	cmd.Action(action(func() error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return f.run(ctx, k, os.Stdout, os.Stderr)
	}))
}

// run tests and prints. Ctrl-C ends it; what was found is printed.
func (f *testFlags) run(ctx context.Context, k testKind, out, progress io.Writer) error {
	if f.directions != both {
		f.options.Directions = []string{f.directions}
	}
	env, stop, err := testEnvironment(f.clock)
	if err != nil {
		return err
	}
	defer stop()
	target := probe.Target{Path: strings.Trim(f.options.Responder, "[]"), Probe: k.word, Peer: f.options.Responder}
	bar := newProgressBar(progress)
	lender, err := f.lender(ctx, env.Links, &target, bar.say)
	if err != nil {
		return err
	}
	kind, err := k.kind(env, target, f.options)
	if err != nil {
		return asUsage(err)
	}
	outcome, err := heavy.OnceLent(ctx, env, target, f.options, kind, lender, bar.show)
	bar.clear()
	if outcome == nil {
		return asUsage(err)
	}
	if printErr := f.print(out, k, outcome); printErr != nil {
		return errors.Join(err, printErr)
	}
	return err
}

// print writes what there is of an outcome, also of one that did not complete.
func (f *testFlags) print(out io.Writer, k testKind, o *heavy.Outcome) error {
	if f.json {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(o)
	}
	if o.Body == nil {
		return nil
	}
	if err := printSummary(out, o); err != nil {
		return err
	}
	if err := k.print(out, o.Body); err != nil {
		return err
	}
	for _, n := range o.Notes {
		if _, err := fmt.Fprintln(out, "note:", n); err != nil {
			return err
		}
	}
	return nil
}

// testEnvironment is what a run borrows: no pacer, since a stream keeps its own time.
func testEnvironment(f clockFlags) (env probe.Env, stop func(), err error) {
	log := slog.New(slog.DiscardHandler)
	links, err := sched.NewLinks(sched.LinksOptions{})
	if err != nil {
		return env, nil, err
	}
	monitor, err := f.monitor(metric.Discard{}, log)
	if err != nil {
		return env, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = monitor.Run(ctx) }()
	f.await(monitor, time.Second)
	return probe.Env{Log: log, Sink: metric.Discard{}, Clock: monitor, Links: links}, func() { cancel(); <-done }, nil
}
