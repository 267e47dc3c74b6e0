package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/probes/stamp"
)

// probeFlags are the flags of a measurement by a light probe.
type probeFlags struct {
	name        string // of its type
	host        string
	port        uint16
	count       uint64
	json        bool
	verbose     bool
	clock       clockFlags
	measurement probe.Measurement
}

func lightProbeCommands(app *kingpin.Application) { probeCommands(app, probes.All()) }

// probeCommands adds a command for each type of light probes that measures from the terminal.
func probeCommands(app *kingpin.Application, types []probe.Type) {
	for _, t := range types {
		if kind, ok := t.(probe.Terminal); ok {
			(&probeFlags{name: t.Name(), measurement: kind.Terminal()}).register(app)
		}
	}
}

func (f *probeFlags) register(app *kingpin.Application) {
	c := f.measurement.Command()
	cmd := app.Command(cmp.Or(c.Name, flagName(f.name)), c.Help)
	cmd.Arg("host", c.Host).Required().StringVar(&f.host)
	if c.Port != "" {
		cmd.Flag("port", c.Port).Uint16Var(&f.port)
	}
	cmd.Flag("count", "Number of test packets; 0: until interrupted.").Short('c').Default("10").Uint64Var(&f.count)
	own, agent := f.measurement.Options()
	registerOptions(cmd, flagOf, own, agent)
	for key, letter := range c.Letters {
		cmd.GetFlag(flagName(key)).Short(letter)
	}
	cmd.Flag("verbose", "Print a line per packet as soon as its outcome is known; with --json to standard error.").Short('v').BoolVar(&f.verbose)
	cmd.Flag("json", "Print the result as JSON; it has no rows, so --json=summary prints the same.").BoolVar(&f.json)
	cmd.Flag(summaryFlag, "As --json=summary.").Hidden().BoolVar(&f.json)
	f.clock.register(cmd)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout, os.Stderr) }))
}

// run measures and prints. Ctrl-C ends the sending; the results so far are printed.
func (f *probeFlags) run(ctx context.Context, out, progress io.Writer) error {
	found, err := f.measure(ctx, out, progress)
	if f.json {
		err = printed(out, f.document(ctx, found, err), err)
	} else if found != nil {
		if printErr := f.print(ctx, out, found); printErr != nil {
			return printErr
		}
	}
	return err
}

// measure returns nil without a test packet. The error may be probe.ErrNoReply. Lines of packets go to out.
func (f *probeFlags) measure(ctx context.Context, out, progress io.Writer) (*probe.Measured, error) {
	if f.port != 0 {
		if _, port, err := net.SplitHostPort(f.host); err == nil && port != "" {
			return nil, usageError{fmt.Errorf("HOST is %q, which has the port %s; --port is for a host without one", f.host, port)}
		}
	}
	env, stop, err := environment(f.clock)
	if err != nil {
		return nil, err
	}
	defer stop()
	target := probe.Target{Path: f.host, Probe: f.name, Peer: peerWithPort(f.host, f.port)}
	live := newLiveLine(progress)
	defer live.announceEnd(ctx)()
	show, listed := live.show, func() {}
	if f.verbose {
		show = func(string) {} // the lines of packets are the progress
		if f.json {
			out = progress
		}
		env.Recorder = new(record.Recorder)
		listed = printPackets(out, env.Recorder.Packets())
	}
	found, err := f.measurement.Measure(ctx, env, target, f.count, show)
	listed()
	live.clear()
	if meant := hostport.BracketsMeant(f.host); meant != "" && f.port == 0 {
		live.say("HOST is the IPv6 address %s without a port; write %s if the last group is the port", f.host, meant)
	}
	for _, w := range found.Warnings {
		live.say("%s", w)
	}
	if err != nil && !errors.Is(err, probe.ErrNoReply) {
		return nil, asUsage(err, flagOf)
	}
	return &found, err
}

// print writes the table of a result and its notes, and says so if Ctrl-C ended the sending.
func (f *probeFlags) print(ctx context.Context, out io.Writer, found *probe.Measured) error {
	if len(found.Table.Rows) > 0 {
		t := newTable(out, "%s", found.Table.Heading)
		t.right, t.rows = true, found.Table.Rows
		if err := t.end(); err != nil {
			return err
		}
	}
	notes := slices.Clone(found.Notes)
	if f.stopped(ctx, found) && found.Received > 0 {
		notes = append(notes, fmt.Sprintf("the results are partial: stopped after %d of %d test packets", found.Sent, f.count))
	}
	return printLines(out, notes)
}

// stopped reports whether Ctrl-C ended the sending before the last packet.
func (f *probeFlags) stopped(ctx context.Context, found *probe.Measured) bool {
	return ctx.Err() != nil && found.Sent < f.count
}

// asUsage makes option errors, one or several joined, a usage error with the names of the flags: exit status 2. flag is the flag of a key.
func asUsage(err error, flag func(key string) string) error {
	if err == nil {
		return nil
	}
	var lines []string
	for _, one := range joined(err) {
		var wrong *option.Error
		if !errors.As(one, &wrong) {
			return err
		}
		lines = append(lines, flag(wrong.Key)+" "+wrong.Named(flag))
	}
	if lines == nil {
		return err
	}
	return usageError{errors.New(strings.Join(lines, "\noneway: "))}
}

// joined are errors that are joined at the top, also in each other.
func joined(err error) (all []error) {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, one := range many.Unwrap() {
		all = append(all, joined(one)...)
	}
	return all
}

// environment starts the pacer and the clock monitor that a single run needs.
func environment(f clockFlags) (env probe.Env, stop func(), err error) {
	log := slog.New(slog.DiscardHandler)
	monitor, err := f.monitor(metric.Discard{}, log)
	if err != nil {
		return env, nil, err
	}
	pacer, err := sched.NewPacer()
	if err != nil {
		return env, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = pacer.Run(ctx) })
	running.Go(func() { _ = monitor.Run(ctx) })
	f.await(monitor, time.Second)
	return probe.Env{Log: log, Sink: metric.Discard{}, Clock: monitor, Pacer: pacer, Light: stamp.Light, Links: link.NewTable(nil)}, func() {
		cancel()
		running.Wait()
	}, nil
}

// peerWithPort joins a host and the --port flag.
func peerWithPort(host string, port uint16) string {
	if port == 0 {
		return host
	}
	if inner, bracket := strings.CutPrefix(host, "["); bracket && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
