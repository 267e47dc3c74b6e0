// Command oneway-demo shows the whole product on one machine: an emulated link
// with the parameters of a paper, two agents that measure it with real packets
// and kernel time stamps, a real Prometheus that scrapes and judges them, and a
// table that holds what was measured against what was configured.
//
// It needs no configuration and sends nothing beyond its own namespaces. All
// that it starts is gone when it ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/tests/lab"
)

type options struct {
	profile, report, binary string
	exit                    bool
	measure                 time.Duration
	seed                    uint64
}

func main() { os.Exit(lab.Main(run)) }

func run() int {
	var o options
	app := kingpin.New("oneway-demo", "An emulated link, two agents, Prometheus, and a table of configured and measured values.")
	app.HelpFlag.Short('h')
	app.Flag("profile", "Built-in profile (evdo, lan, wibro, wifi, wimax-calgary) or a YAML file.").Default("wibro").StringVar(&o.profile)
	app.Flag("report", "Where the table is written as JSON.").Default("build/demo/report.json").StringVar(&o.report)
	app.Flag("oneway", "The program to show.").Default("build/oneway").StringVar(&o.binary)
	app.Flag("measure", "How long to measure before the table is made.").Default("60s").DurationVar(&o.measure)
	app.Flag("seed", "Seed of the link's faults.").Default("1").Uint64Var(&o.seed)
	app.Flag("exit", "End after the table; exit status 0 only if all values are within tolerance.").BoolVar(&o.exit)
	if _, err := app.Parse(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oneway-demo:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := show(ctx, o)
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "oneway-demo:", err)
		return 1
	}
	return 0
}

// show raises everything, prints the table, and tears everything down.
func show(ctx context.Context, o options) (err error) {
	profile, err := lab.LoadProfile(o.profile)
	if err != nil {
		return err
	}
	if err := lab.Available(); err != nil {
		return fmt.Errorf("the emulated link needs root, or a kernel that lets users make namespaces: %w", err)
	}
	step("raising the link %q: forward %s, reverse %s", profile.Name, describe(profile.Forward), describe(profile.Reverse))
	network, err := lab.New(lab.Options{Profile: profile, Seed: o.seed, Classifier: classify})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	stack, err := raise(ctx, network, profile, o)
	defer func() { err = errors.Join(err, stack.stop()) }()
	if err != nil {
		return err
	}
	if err := stack.wait(ctx, o.measure); err != nil {
		return err
	}
	rows, err := stack.collect(ctx, profile)
	if err != nil {
		return err
	}
	if limited(profile) {
		full, err := stack.load(ctx, os.Stdout, profile)
		if err != nil {
			return err
		}
		rows = append(rows, full...)
	}
	if err := errors.Join(network.Err(), writeReport(o.report, rows), printTable(os.Stdout, profile.Name, rows)); err != nil {
		return err
	}
	if err := stack.judge(ctx); err != nil {
		return err
	}
	if bad := outside(rows); o.exit || ctx.Err() != nil {
		if len(bad) > 0 {
			return fmt.Errorf("outside tolerance: %v", bad)
		}
		return nil
	}
	stack.announce(os.Stdout)
	<-ctx.Done()
	return nil
}

func step(format string, args ...any) { fmt.Printf("-- "+format+"\n", args...) }

func describe(l lab.Link) string {
	rate := "unlimited"
	if l.Rate > 0 {
		rate = fmt.Sprintf("%g Mb/s", float64(l.Rate)/1e6)
	}
	return fmt.Sprintf("%s, %v, loss %g %%", rate, l.Delay, 100*l.Loss)
}
