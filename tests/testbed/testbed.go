// Package testbed runs a reflector on a lab's server and a sender on its client, for
// tests that compare the sender's report with the truth.
package testbed

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/lab"
	"oneway.example/tests/testpacket"
)

// Port is the reflector's.
const Port = stampfmt.Port

// Run is one measurement.
type Run struct {
	// Reflector is its address on the server.
	Reflector netip.Addr
	// ClockError is the clock error bound of both ends, which read one clock.
	ClockError time.Duration
	Packets    uint64
	Interval   time.Duration
	// LossWait is the waiting time after which a packet is lost; zero: the default.
	LossWait time.Duration
	// Each, if set, is called for every packet with a reply.
	Each func(p sample.Packet, forward, reverse sample.Delay)
}

// Measure runs it and returns the sender's report.
func Measure(t *testing.T, network *lab.Lab, o Run) (report stamp.Report) {
	t.Helper()
	at := netip.AddrPortFrom(o.Reflector, Port)
	options := stamp.DefaultOptions()
	options.Interval = o.Interval
	if o.LossWait > 0 {
		options.LossTimeout = o.LossWait
	}
	monitor := static.New(o.ClockError, metric.Discard{})
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: monitor}
	r, err := reflector.New(reflector.Options{Listen: []netip.AddrPort{at}, LossWait: o.LossWait},
		reflector.Env{Log: env.Log, Sink: env.Sink, Clock: monitor})
	if err != nil {
		t.Fatal(err)
	}
	if env.Pacer, err = sched.NewPacer(); err != nil {
		t.Fatal(err)
	}
	stop := start(t, env.Pacer.Run, monitor.Run, func(ctx context.Context) error {
		return network.Server.Do(func() error { return r.Run(ctx) })
	})
	defer stop()
	<-r.Started()
	err = network.Client.Do(func() error {
		p, err := stamp.NewType().NewProber(env, probe.Target{Path: "bed", Probe: "stamp", Peer: at.String()}, options)
		if err != nil {
			return err
		}
		p.OnPacket = o.Each
		report, err = p.Measure(t.Context(), o.Packets, func(stamp.Report) {})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Background runs f until the test ends; an error of it fails the test.
func Background(t *testing.T, f func(context.Context) error) {
	t.Helper()
	t.Cleanup(start(t, f))
}

// start runs all of it until stop is called.
func start(t *testing.T, run ...func(context.Context) error) (stop func()) {
	// Not the test's context, which ends before the clean-ups.
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, len(run))
	for _, f := range run {
		go func() { done <- f(ctx) }()
	}
	return func() {
		cancel()
		for range run {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPacket is testpacket.STAMP.
func TestPacket(payload []byte) (seq uint32, ok bool) { return testpacket.STAMP(payload) }

// Classify is a lab's Classifier: it selects test packets and their replies by their
// own number.
func Classify(payload []byte, src, dst netip.AddrPort) (key uint64, ok bool) {
	if src.Port() != Port && dst.Port() != Port {
		return 0, false
	}
	seq, ok := TestPacket(payload)
	return uint64(seq), ok
}
