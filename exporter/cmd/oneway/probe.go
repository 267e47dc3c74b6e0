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

	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/sched"
)

const probeHelp = `Measure both directions to a STAMP or TWAMP-Light reflector, from the terminal.

One-way delay needs to know this host's clock: by default chronyd is asked; on
hosts that share one clock give --clock=static --clock-bound=50us; without any,
round trip, loss and variation are still measured.

Examples:
  oneway probe reflector.example.net
  oneway probe 192.0.2.7 --port 862 --count 500 --interval 20ms --size 172 --dscp 46
  oneway probe [2001:db8::7]:8620 --key-file /etc/oneway/key --json > result.json

Exit status: 0 measured, 1 no answer, 2 usage.`

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
	cmd.Flag("count", "Test packets to send; 0: until interrupted.").Short('c').Default("10").Uint64Var(&f.count)
	cmd.Flag("interval", "Time between test packets.").Short('i').Default("200ms").DurationVar(&o.Interval)
	cmd.Flag("size", "UDP payload in octets (default 172, a G.711 voice packet).").Short('s').IntVar(&o.Size)
	cmd.Flag("dscp", "DiffServ code point, 0..63.").IntVar(&o.DSCP)
	cmd.Flag("ttl", "Time to live.").Default("255").IntVar(&o.TTL)
	cmd.Flag("schedule", "periodic or poisson.").Default("periodic").StringVar(&o.Schedule)
	cmd.Flag("key-file", "File with the shared secret of authenticated mode.").StringVar(&o.KeyFile)
	cmd.Flag("timeout", "Waiting time of either direction: a packet that takes longer is lost, and so is a round trip.").Default("3s").DurationVar(&o.LossTimeout)
	cmd.Flag("local", "Address to send from.").StringVar(&o.Local)
	cmd.Flag("hardware", "Use the time stamps of this interface's card.").PlaceHolder("IFACE").StringVar(&o.Hardware)
	cmd.Flag("path-minimum", "What the delay of either direction is known to be at least; it bounds the clocks' offset. 0: not known.").Default("0s").DurationVar(&o.PathMinimum)
	cmd.Flag("json", "Print the result as JSON.").BoolVar(&f.json)
	f.clock.register(cmd)
	cmd.Action(action(func() error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return f.run(ctx, os.Stdout, os.Stderr)
	}))
}

// run measures and prints. Ctrl-C ends the sending; what was measured is printed.
func (f *probeFlags) run(ctx context.Context, out, progress io.Writer) error {
	env, stop, err := f.environment()
	if err != nil {
		return err
	}
	defer stop()
	target := probe.Target{Path: f.host, Probe: "stamp", Peer: peerWithPort(f.host, f.port)}
	prober, err := stamp.New().NewProber(env, target, f.options)
	if err != nil {
		return asUsage(err)
	}
	live := newLiveLine(progress, f.count, f.options.Interval)
	report, err := prober.Measure(ctx, f.count, live.show)
	live.clear()
	if err != nil && !errors.Is(err, stamp.ErrNoAnswer) {
		return err
	}
	if printErr := f.print(out, report); printErr != nil {
		return printErr
	}
	if err != nil {
		return fmt.Errorf("%w%s; is `oneway reflect` running there, is the UDP port open?", err, because(report.Error))
	}
	return nil
}

// asUsage makes a wrong option the user's business: exit status 2, and the flag's name.
func asUsage(err error) error {
	var wrong *probe.OptionError
	if !errors.As(err, &wrong) {
		return err
	}
	flag := "--" + strings.ReplaceAll(wrong.Key, "_", "-")
	switch wrong.Key {
	case "loss_timeout":
		flag = "--timeout"
	case "peer":
		flag = "HOST"
	}
	return usageError{fmt.Errorf("%s %s", flag, wrong.Problem)}
}

func because(networkError string) string {
	if networkError == "" {
		return ""
	}
	return " (" + networkError + ")"
}

func (f *probeFlags) print(out io.Writer, r stamp.Report) error {
	if !f.json {
		return printReport(out, r)
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// environment starts what a prober borrows: the pacer and the clock monitor.
func (f *probeFlags) environment() (env probe.Env, stop func(), err error) {
	log := slog.New(slog.DiscardHandler)
	monitor, err := f.clock.monitor(metric.Discard{}, log)
	if err != nil {
		return env, nil, err
	}
	pacer, err := sched.NewPacer()
	if err != nil {
		return env, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { _ = pacer.Run(ctx); done <- struct{}{} }()
	go func() { _ = monitor.Run(ctx); done <- struct{}{} }()
	f.clock.await(monitor, time.Second)
	return probe.Env{Log: log, Sink: metric.Discard{}, Clock: monitor, Pacer: pacer}, func() {
		cancel()
		<-done
		<-done
	}, nil
}
