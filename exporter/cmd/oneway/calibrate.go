package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/calibration"
	"oneway.example/exporter/calibration/backtoback"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
)

const calibrateHelp = `Measure the error of the time stamps, back to back, by RFC 7679 section 3.7.3.

Runs the sender and a reflector over a path whose delay is known: this host's
loopback (the default), a veth pair that it makes for itself (--veth, root), or a
cable to another host that runs "oneway reflect" (--peer). It prints the systematic
error (median) and the random one (95 %) of both directions, and with --output
stores them; the agent reads that file (calibration_file).

A cable between two interfaces of one host does not do: the kernel sends packets
between its own addresses over loopback. Move one interface into a network
namespace, run "oneway reflect --clock=none" in there (one kernel is one clock), and
give its address as --peer. Two hosts must be synchronized by the same pulse (PPS),
see --clock.

The agent removes the systematic error from delays over the interface. Their bound
is widened where the random error is larger than the 25 µs that are assumed, and
never narrowed, unless --trust says so. Random error grows with load: calibrate
under the load that is measured under.

Examples:
  oneway calibrate
  oneway calibrate --output /etc/oneway/calibration.json
  oneway calibrate --veth --interface eth0 --output /etc/oneway/calibration.json
  oneway calibrate --peer 192.0.2.7:862 --true-delay 2us --output calibration.json
  oneway calibrate --count 20000 --trust --json

Exit status: 0 calibrated, 1 not (no reply, too few stamps, clock), 2 usage.`

// calibrateClockBound is claimed of the one clock that both ends on this host read. No
// figure of a calibration depends on it.
const calibrateClockBound = time.Microsecond

type calibrateFlags struct {
	veth, json bool

	output  string
	clock   clockFlags
	options backtoback.Options
}

func calibrateCommand(app *kingpin.Application) {
	f := &calibrateFlags{options: backtoback.Options{Stamp: stamp.DefaultOptions()}}
	o, s := &f.options, &f.options.Stamp
	cmd := app.Command("calibrate", calibrateHelp)
	cmd.Flag("veth", "Over a veth pair in two private network namespaces; needs root.").BoolVar(&f.veth)
	cmd.Flag("peer", "Over a cable to this reflector.").PlaceHolder("HOST:PORT").StringVar(&o.Peer)
	cmd.Flag("interface", "Interface to calibrate; found if not given. With --veth: store the result for this veth.").PlaceHolder("IFACE").StringVar(&o.Interface)
	cmd.Flag("true-delay", "Known delay of one way: wire length and size over rate.").Default("0s").DurationVar(&o.TrueDelay)
	cmd.Flag("count", "Test packets to send, 200 to 1000000.").Short('c').Default("5000").Uint64Var(&o.Count)
	cmd.Flag("interval", "Time between test packets.").Short('i').Default("2ms").DurationVar(&s.Interval)
	cmd.Flag("payload-bytes", "UDP payload in bytes (default 172, with --key-file 256).").Short('s').IntVar(&s.Size)
	cmd.Flag("timeout", "A packet without a reply for so long is lost.").Default("3s").DurationVar(&s.LossTimeout)
	cmd.Flag("trust", "Let the agent narrow bounds by this calibration: its largest error instead of 25 µs.").BoolVar(&o.Trust)
	cmd.Flag("output", "File to store the result in; other interfaces in it are kept.").Short('o').PlaceHolder("FILE").StringVar(&f.output)
	cmd.Flag("json", "Print the result as JSON.").BoolVar(&f.json)
	cmd.Flag("key-file", "With --peer: file with the shared secret of authenticated mode.").StringVar(&s.KeyFile)
	cmd.Flag("local", "With --peer: address to send from.").StringVar(&s.Local)
	cmd.Flag("hardware", "With --peer: use the time stamps of this interface's card.").PlaceHolder("IFACE").StringVar(&s.Hardware)
	f.clock.register(cmd)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout, os.Stderr) }))
}

// complete checks the flags that depend on each other and fills in the rest.
func (f *calibrateFlags) complete() error {
	o := &f.options
	o.Setup = calibration.Loopback
	switch {
	case f.veth && o.Peer != "":
		return errors.New("--veth and --peer exclude each other")
	case f.veth:
		o.Setup = calibration.Veth
	case o.Peer != "":
		o.Setup = calibration.Peer
	}
	switch {
	case o.Peer == "" && (o.Stamp.KeyFile != "" || o.Stamp.Local != "" || o.Stamp.Hardware != ""):
		return errors.New("--key-file, --local and --hardware are for --peer")
	case f.veth && f.output != "" && o.Interface == "":
		return errors.New("--veth with --output needs --interface: which veth of this host is the result for?")
	case o.Count > 1_000_000:
		return fmt.Errorf("--count is %d; it must be between %d and 1000000", o.Count, calibration.MinCount)
	case o.TrueDelay < 0 || o.TrueDelay > time.Second:
		return fmt.Errorf("--true-delay is %v; it must be between 0 and 1s", o.TrueDelay)
	}
	if o.Stamp.Size == 0 {
		o.Stamp.Size = 172
		if o.Stamp.KeyFile != "" {
			o.Stamp.Size = 256
		}
	}
	o.Stamp.Codecs, o.Stamp.Playout = nil, nil // no voice here
	if o.Setup != calibration.Peer {
		f.clock = clockFlags{source: "static", bound: calibrateClockBound}
	}
	return nil
}

// run measures, stores and prints. Nothing is stored of a run that was interrupted.
func (f *calibrateFlags) run(ctx context.Context, out, progress io.Writer) error {
	if err := f.complete(); err != nil {
		return usageError{err}
	}
	table := &calibration.Table{}
	if f.output != "" { // find out before the work that it cannot be stored
		var err error
		if table, err = calibration.LoadOrNew(f.output); err != nil {
			return fmt.Errorf("%w; move the file away to begin a new one", err)
		}
	}
	env, stop, err := environment(f.clock)
	if err != nil {
		return err
	}
	defer stop()
	live := newLiveLine(progress)
	result, err := backtoback.Run(ctx, f.options, env, func(r stamp.Report) {
		live.show(sendingLine(r, f.options.Count, f.options.Stamp.Interval))
	})
	live.clear()
	if err != nil {
		return explainCalibration(err)
	}
	if f.output != "" {
		if err := table.Put(result.Record); err != nil {
			return err
		}
		if err := table.Save(f.output); err != nil {
			return err
		}
	}
	return f.print(out, result)
}

// explainCalibration names the flag that is wrong, or what to do.
func explainCalibration(err error) error {
	if errors.Is(err, stamp.ErrNoReply) {
		return fmt.Errorf("%w; is `oneway reflect` running there, is the UDP port open?", err)
	}
	return asUsage(err)
}

// calibrationJSON is what --json prints: the record as stored, what is made of it for
// one stamp of the interface, and the run's report.
type calibrationJSON struct {
	Record     calibration.Record `json:"record"`
	Systematic int64              `json:"stamp_systematic_ns"`
	Random     int64              `json:"stamp_random_ns"`
	Largest    *int64             `json:"stamp_largest_ns,omitempty"` // only if trusted
	Report     stamp.Report       `json:"report"`
}

func (f *calibrateFlags) print(out io.Writer, r backtoback.Result) error {
	e := r.Record.Errors()
	if !f.json {
		return f.printTable(out, r.Record, e, r.Report)
	}
	j := calibrationJSON{Record: r.Record, Systematic: e.Systematic.Nanoseconds(), Random: e.Random.Nanoseconds(), Report: r.Report}
	if e.Trusted {
		j.Largest = new(e.Largest.Nanoseconds())
	}
	return printJSON(out, j)
}

// printTable writes the table for people: both directions, then what one stamp of the
// interface is worth.
func (f *calibrateFlags) printTable(out io.Writer, r calibration.Record, e bound.Calibration, report stamp.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s (%s, %s stamps)\tforward\treverse\t\n", r.Interface, r.Setup, r.Origin)
	row := func(name string, get func(calibration.Direction) string) {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", name, get(r.Forward), get(r.Reverse))
	}
	row("packets used", func(d calibration.Direction) string { return fmt.Sprint(d.Count) })
	row("systematic (median)", func(d calibration.Direction) string { return probe.Figures(d.Systematic) })
	row("random (95 %) ±", func(d calibration.Direction) string { return probe.Figures(d.Random) })
	row("largest ±", func(d calibration.Direction) string { return probe.Figures(d.Largest) })
	if err := w.Flush(); err != nil {
		return fmt.Errorf("calibrate: print the table: %w", err)
	}
	fmt.Fprintf(out, "one stamp of %s: %s systematic, removed from delays; %s random\n", r.Interface, probe.Figures(e.Systematic), probe.Figures(e.Random))
	if e.Trusted {
		fmt.Fprintf(out, "trusted: bounds of delays have %s for it\n", probe.Figures(e.Largest))
	}
	if report.RoundTrip.Lost > 0 {
		fmt.Fprintf(out, "note: %d packets were lost; back to back none should be\n", report.RoundTrip.Lost)
	}
	if f.output == "" {
		_, err := fmt.Fprintln(out, "not stored; --output FILE stores it")
		return err
	}
	_, err := fmt.Fprintf(out, "stored in %s\n", f.output)
	return err
}
