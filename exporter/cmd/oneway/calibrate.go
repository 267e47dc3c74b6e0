//go:build !slim

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/agent/backtoback"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probes/stamp"
)

const calibrateHelp = `Measure the error of the timestamps back to back.

RFC 7679 section 3.7.3 describes the calibration. The command
runs the sender and a reflector over a path of known delay: this host's loopback
(the default), a veth pair that the command creates (--veth, needs root), or a
cable to another host that runs "oneway reflect" (--peer). It prints the systematic
error (median) and the random error (95 %) of both directions, and --output
stores them in a file that the agent reads (calibration_file).

A cable between two interfaces of one host cannot be used: the kernel sends packets
between its own addresses over loopback. Move one interface into a network
namespace, run "oneway reflect --clock=none" in it (both ends then read the same
clock), and give its address as --peer. Two hosts must be synchronized by the same
pulse per second (PPS), see --clock.

The agent removes the systematic error from delays over the interface. It widens
their error bound where the random error exceeds the assumed one, and narrows it
only with --trust. The random error grows with the load of the host: calibrate
under the load of normal operation.

Examples:
  oneway calibrate
  oneway calibrate --output /etc/oneway/calibration.json
  oneway calibrate --veth --interface eth0 --output /etc/oneway/calibration.json
  oneway calibrate --peer 192.0.2.7 --true-delay 2us --output calibration.json
  oneway calibrate --count 20000 --trust --json

Exit status: 0 calibrated, 1 failure (no reply, too few timestamps, clock), 2 wrong usage.`

// calibrateClockBound is the error bound of the clock that both ends on this host share. No result of a calibration
// depends on it.
const calibrateClockBound = time.Microsecond

// calibrateInterval is the default time between test packets.
const calibrateInterval = 2 * time.Millisecond

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
	cmd.Flag("veth", "Use a veth pair in two private network namespaces; needs root.").BoolVar(&f.veth)
	cmd.Flag("peer", "Use a cable to this reflector.").PlaceHolder("HOST:PORT").StringVar(&o.Peer)
	option.SetDefaults(o)
	registerOptions(cmd, flagOf, o, o)
	s.Interval = calibrateInterval
	const ofPeer = " For --peer."
	more := map[string]string{"interval": "", "payload_bytes": "", "loss_timeout": "", "key_file": ofPeer, "local": ofPeer, "hardware": ofPeer}
	for _, d := range option.All(s) {
		if text, used := more[d.Key]; used {
			registerOption(cmd, d, flagOf, text)
		}
	}
	for key, letter := range map[string]rune{"count": 'c', "interval": 'i', "payload_bytes": 's'} {
		cmd.GetFlag(flagName(key)).Short(letter)
	}
	cmd.Flag("output", "File to store the result in; entries of other interfaces are kept.").Short('o').PlaceHolder("FILE").StringVar(&f.output)
	cmd.Flag("json", "Print the result as JSON.").BoolVar(&f.json)
	f.clock.register(cmd)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout, os.Stderr) }))
}

// complete checks flags that depend on each other and sets the remaining options.
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
		if _, _, err := hostport.Split(o.Peer, 1); err != nil {
			return fmt.Errorf("--peer is %q; %w", o.Peer, err)
		}
	}
	switch {
	case o.Peer == "" && (o.Stamp.KeyFile != "" || o.Stamp.Local != "" || o.Stamp.Hardware != ""):
		return errors.New("--key-file, --local and --hardware are for --peer")
	case f.veth && f.output != "" && o.Interface == "":
		return errors.New("--veth with --output needs --interface, the interface that the result is stored for")
	}
	if o.Stamp.Size == 0 {
		o.Stamp.Size = stamp.DefaultSize(o.Stamp.KeyFile != "")
	}
	o.Stamp.Codecs, o.Stamp.Playout = nil, nil // no voice here
	if o.Setup != calibration.Peer {
		f.clock = staticClock(calibrateClockBound)
	}
	return nil
}

// run measures, stores and prints. It stores nothing of an interrupted run.
func (f *calibrateFlags) run(ctx context.Context, out, progress io.Writer) error {
	result, err := f.measure(ctx, progress)
	switch {
	case f.json:
		return printed(out, f.document(ctx, result, err), err)
	case err != nil:
		return err
	}
	return f.printTable(out, result.Record, result.Record.Errors(), result.Report)
}

// measure measures and stores. Without an error there is a result.
func (f *calibrateFlags) measure(ctx context.Context, progress io.Writer) (*backtoback.Result, error) {
	if err := f.complete(); err != nil {
		return nil, usageError{err}
	}
	table := &calibration.Table{}
	if f.output != "" { // an unusable file must fail before the measurement
		if dir, err := os.Stat(filepath.Dir(f.output)); err != nil || !dir.IsDir() {
			return nil, usageError{fmt.Errorf("--output is %q; its directory does not exist", f.output)}
		}
		var err error
		if table, err = calibration.LoadOrNew(f.output); err != nil {
			return nil, fmt.Errorf("%w; move the file away to start a new one", err)
		}
	}
	env, stop, err := environment(f.clock)
	if err != nil {
		return nil, err
	}
	defer stop()
	live := newLiveLine(progress)
	result, err := backtoback.Run(ctx, f.options, env, func(r stamp.Report) {
		live.show(r.Progress(f.options.Count, f.options.Stamp.Interval))
	})
	live.clear()
	if err != nil {
		return nil, asUsage(err, flagOf)
	}
	if f.output != "" {
		if err := table.Put(result.Record); err != nil {
			return nil, err
		}
		if err := table.Save(f.output); err != nil {
			return nil, err
		}
	}
	return &result, nil
}

// printTable writes a readable table: the errors of both directions, then those of one timestamp of the interface.
func (f *calibrateFlags) printTable(out io.Writer, r calibration.Record, e bound.Calibration, report stamp.Report) error {
	t := newTable(out, "%s (%s, %s timestamps)\n", r.Interface, r.Setup, r.Origin)
	t.right = true
	t.row("", sample.Forward.String(), sample.Reverse.String())
	row := func(name string, get func(calibration.Direction) string) { t.row(name, get(r.Forward), get(r.Reverse)) }
	row("packets used", func(d calibration.Direction) string { return fmt.Sprint(d.Count) })
	row("systematic (median)", func(d calibration.Direction) string { return unit.Duration(d.Systematic) })
	limit := func(d time.Duration) string { return unit.Seconds.FormatLimit(d.Seconds()) }
	row("random (95 %)", func(d calibration.Direction) string { return limit(d.Random) })
	row("largest", func(d calibration.Direction) string { return limit(d.Largest) })
	if err := t.end(); err != nil {
		return fmt.Errorf("calibrate: print the table: %w", err)
	}
	lines := []string{fmt.Sprintf("one timestamp of %s: %s systematic, removed from delays; %s random", r.Interface, unit.Duration(e.Systematic), limit(e.Random))}
	if e.Trusted {
		lines = append(lines, fmt.Sprintf("trusted: error bounds of delays include %s for it", limit(e.Largest)))
	}
	if report.RoundTrip.Lost > 0 {
		lines = append(lines, "note: "+unit.Counted(report.RoundTrip.Lost, "packet was", "packets were")+" lost; a back-to-back path should lose none")
	}
	stored := "not stored; --output FILE stores it"
	if f.output != "" {
		stored = "stored in " + f.output
	}
	for _, line := range append(lines, stored) {
		if err := printText(out, widthOf(out), line, 2); err != nil {
			return err
		}
	}
	return nil
}
