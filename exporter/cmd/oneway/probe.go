package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probes/stamp"
)

const probeHelp = `Measure both directions of the path to a STAMP or TWAMP-Light reflector, from the terminal.

One-way delay needs the error bound of this host's clock: by default the command asks
chronyd; for hosts that share one clock use --clock=static --clock-bound=50us. Without
a bound, round-trip time, loss and delay variation are still measured.

Examples:
  oneway probe reflector.example.net
  oneway probe 192.0.2.7 --port 862 --count 500 --interval 20ms --payload-bytes 172 --dscp 46
  oneway probe [2001:db8::7]:8620 --key-file /etc/oneway/key --json > result.json

Exit status: 0 measured, 1 no reply, 2 wrong usage.`

type probeFlags struct {
	host    string
	port    uint16
	count   uint64
	json    bool
	clock   clockFlags
	options stamp.Options
}

func probeCommand(app *kingpin.Application) {
	f := &probeFlags{options: stamp.DefaultOptions()}
	o := &f.options
	cmd := app.Command("probe", probeHelp)
	cmd.Arg("host", "Reflector: name or address, with an optional :port.").Required().StringVar(&f.host)
	cmd.Flag("port", "UDP port of the reflector (default 862).").Uint16Var(&f.port)
	cmd.Flag("count", "Number of test packets; 0: until interrupted.").Short('c').Default("10").Uint64Var(&f.count)
	o.Interval = stamp.OnceInterval
	agent := stamp.DefaultOptions()
	registerOptions(cmd, o, &agent)
	cmd.GetFlag("interval").Short('i')
	cmd.GetFlag("payload-bytes").Short('s')
	cmd.Flag("json", "Print the result as JSON.").BoolVar(&f.json)
	f.clock.register(cmd)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout, os.Stderr) }))
}

// run measures and prints. Ctrl-C ends the sending; the results so far are printed.
func (f *probeFlags) run(ctx context.Context, out, progress io.Writer) error {
	report, err := f.measure(ctx, progress)
	if f.json {
		err = printed(out, f.document(ctx, report, err), err)
	} else if report != nil {
		if printErr := errors.Join(printReport(out, *report), f.printPartial(ctx, out, *report)); printErr != nil {
			return printErr
		}
	}
	return err
}

// measure returns nil without a test packet. The error may be stamp.ErrNoReply.
func (f *probeFlags) measure(ctx context.Context, progress io.Writer) (*stamp.Report, error) {
	env, stop, err := environment(f.clock)
	if err != nil {
		return nil, err
	}
	defer stop()
	target := probe.Target{Path: f.host, Probe: "stamp", Peer: peerWithPort(f.host, f.port)}
	prober, err := stamp.New().NewProber(env, target, f.options)
	if err != nil {
		return nil, asUsage(err)
	}
	f.options = prober.Options()
	live := newLiveLine(progress)
	defer live.announceEnd(ctx)()
	report, err := prober.Measure(ctx, f.count, func(r stamp.Report) { live.show(sendingLine(r, f.count, f.options.Interval)) })
	live.clear()
	if why := clock.Explain(env.Clock); why != "" && !report.SharedClock {
		live.say("note: one-way delays have no error bound: %s", why)
	}
	if err != nil && !errors.Is(err, stamp.ErrNoReply) {
		return nil, err
	}
	return &report, err
}

// printPartial says so if Ctrl-C ended the sending.
func (f *probeFlags) printPartial(ctx context.Context, out io.Writer, r stamp.Report) error {
	if f.stopped(ctx, &r) && r.RoundTrip.Received > 0 {
		return printLines(out, []string{fmt.Sprintf("the results are partial: stopped after %d of %d test packets", *r.Forward.Sent, f.count)})
	}
	return nil
}

// stopped reports whether Ctrl-C ended the sending before the last packet.
func (f *probeFlags) stopped(ctx context.Context, r *stamp.Report) bool {
	return ctx.Err() != nil && r.Forward.Sent != nil && *r.Forward.Sent < f.count
}

// asUsage makes option errors, one or several joined, a usage error with the names of the flags: exit status 2.
func asUsage(err error) error {
	var lines []string
	for _, one := range joined(err) {
		var wrong *probe.OptionError
		if !errors.As(one, &wrong) {
			return err
		}
		lines = append(lines, flagOf(wrong.Key)+" "+wrong.Named(flagOf))
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

// printReport writes a readable table with a column per direction.
func printReport(out io.Writer, r stamp.Report) error {
	if r.RoundTrip.Received == 0 {
		return nil
	}
	t := newTable(out, "%s (%s reflector)\n", r.Peer, r.Reflector)
	t.right = true
	t.row("", "forward", "reverse", "round trip")
	count := func(name string, get func(*stamp.DirectionReport) *uint64, trip string) {
		t.row(name, number(get(&r.Forward)), number(get(&r.Reverse)), trip)
	}
	count("sent", func(d *stamp.DirectionReport) *uint64 { return d.Sent }, "")
	count("received", func(d *stamp.DirectionReport) *uint64 { return d.Received }, strconv.FormatUint(r.RoundTrip.Received, 10))
	count("lost", func(d *stamp.DirectionReport) *uint64 { return d.Lost }, strconv.FormatUint(r.RoundTrip.Lost, 10))
	count("outstanding", func(d *stamp.DirectionReport) *uint64 { return d.Outstanding }, "")
	count("duplicated", func(d *stamp.DirectionReport) *uint64 { return d.Duplicated }, "")
	count("reordered", func(d *stamp.DirectionReport) *uint64 { return d.Reordered }, "")
	count("late", func(d *stamp.DirectionReport) *uint64 { return d.Late }, "")
	count("corrupted", func(d *stamp.DirectionReport) *uint64 { return d.Corrupted }, "")
	t.row("")
	fwd, rev, rtt := orEmpty(r.Forward.Delay), orEmpty(r.Reverse.Delay), orEmpty(r.RoundTrip.Time)
	for _, row := range []struct {
		name string
		get  func(stamp.Distribution) *float64
	}{
		{"delay min", func(d stamp.Distribution) *float64 { return d.Min }},
		{"delay p50", func(d stamp.Distribution) *float64 { return d.P50 }},
		{"delay p95", func(d stamp.Distribution) *float64 { return d.P95 }},
		{"delay p99", func(d stamp.Distribution) *float64 { return d.P99 }},
		{"delay max", func(d stamp.Distribution) *float64 { return d.Max }},
		{"error bound ±", func(d stamp.Distribution) *float64 { return d.ErrorBound }},
	} {
		t.row(row.name, unit.MillisecondsOrDash(row.get(fwd)), unit.MillisecondsOrDash(row.get(rev)), unit.MillisecondsOrDash(row.get(rtt)))
	}
	t.row("PDV p95", unit.MillisecondsOrDash(orEmpty(r.Forward.PDV).P95), unit.MillisecondsOrDash(orEmpty(r.Reverse.PDV).P95))
	t.row("jitter (RFC 3550)", unit.MillisecondsOrDash(r.Forward.Jitter), unit.MillisecondsOrDash(r.Reverse.Jitter))
	for i, v := range r.Forward.Voice {
		if i < len(r.Reverse.Voice) {
			t.row(fmt.Sprintf("R %s, %s", v.Codec, v.Model), fmt.Sprintf("%.1f", v.R), fmt.Sprintf("%.1f", r.Reverse.Voice[i].R))
		}
	}
	if err := t.end(); err != nil {
		return err
	}
	return printNotes(out, r)
}

// printNotes writes what a reader must know to interpret the table.
func printNotes(out io.Writer, r stamp.Report) error {
	var notes []string
	if r.SharedClock {
		notes = append(notes, "both ends run on one kernel and read the same clock; these delays need no clock synchronization")
	}
	for _, d := range []struct {
		name   string
		report stamp.DirectionReport
	}{{"forward", r.Forward}, {"reverse", r.Reverse}} {
		for _, reason := range slices.Sorted(maps.Keys(d.report.Invalid)) {
			notes = append(notes, d.name+": "+whyInvalid(reason, d.report.Invalid[reason]))
		}
		if n := d.report.HostDropped; n != nil && *n > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d packets were dropped by the receiving host, not by the path: it is overloaded, or its socket buffer is too small (net.core.rmem_max)", d.name, *n))
		}
		if d.report.LowConfidence > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d delays are smaller than their own error bound: even their sign is not known", d.name, d.report.LowConfidence))
		}
		if d.report.Negative > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d delays are negative by more than their error bound: one of the clocks is wrong", d.name, d.report.Negative))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		notes = append(notes, fmt.Sprintf("%d test packets not sent: %s", r.Skipped[reason], strings.ReplaceAll(reason, "_", " ")))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Discarded)) {
		notes = append(notes, fmt.Sprintf("%d received packets discarded: %s", r.Discarded[reason], strings.ReplaceAll(reason, "_", " ")))
	}
	if r.Reflector == "stateless" && r.RoundTrip.Lost > 0 {
		notes = append(notes, "the reflector does not number its replies; losses have no direction")
	}
	return printLines(out, notes)
}

// whyInvalid states why delays are not reported.
func whyInvalid(reason string, n uint64) string {
	if reason != sample.BoundTooLarge.String() {
		return fmt.Sprintf("%d delays without a bound: %s", n, strings.ReplaceAll(reason, "_", " "))
	}
	return fmt.Sprintf("%d delays are not reported: one end reports an error bound above one hour or below zero", n)
}

func orEmpty(d *stamp.Distribution) stamp.Distribution {
	if d == nil {
		return stamp.Distribution{}
	}
	return *d
}

// sendingLine is "20 sent  20 replies  forward 1.234 ms  reverse 1.200 ms  3s left".
func sendingLine(r stamp.Report, count uint64, interval time.Duration) string {
	if r.Forward.Sent == nil {
		return ""
	}
	sent, left := *r.Forward.Sent, ""
	if count > sent {
		left = fmt.Sprintf("  %v left", (time.Duration(count-sent) * interval).Round(time.Second))
	}
	return fmt.Sprintf("%d sent  %d replies  forward %s  reverse %s%s", sent, r.RoundTrip.Received,
		unit.MillisecondsOrDash(orEmpty(r.Forward.Delay).P50), unit.MillisecondsOrDash(orEmpty(r.Reverse.Delay).P50), left)
}

// peerWithPort joins a host and the --port flag.
func peerWithPort(host string, port uint16) string {
	if port == 0 {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(int(port)))
}
