package bench

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/capture"
	"oneway.example/tests/lab"
)

// Both programs send a packet each slot, for this number of slots.
const (
	slot  = time.Millisecond
	slots = 4000
)

// BenchmarkDelayAndSchedule sends a packet per millisecond over a veth pair: it reports the error of the forward delay
// against packet sockets at both ends, and the deviation from the schedule at the sender's one.
func BenchmarkDelayAndSchedule(b *testing.B) {
	network := newLab(b)
	for b.Loop() {
		mine := observe(b, network, stampfmt.Port, func() []time.Duration { return measure(b, network) })
		all := []named{{"oneway", mine}}
		if path, ok := have(b, "irtt"); ok {
			all = append(all, named{"irtt", observe(b, network, irttPort, func() (delays []time.Duration) {
				r, _, _ := irtt(b, network, path, slot, slots*slot)
				for _, trip := range r.Trips {
					if trip.Lost == "false" {
						delays = append(delays, trip.Delay.Send)
					}
				}
				return delays
			})})
		}
		compare(b, "error of the reported delay, median", "us-p50", all, func(o outcome) float64 { return quantile(o.wrong, 0.5) })
		compare(b, "error of the reported delay, 99 %", "us-p99", all, func(o outcome) float64 { return quantile(o.wrong, 0.99) })
		compare(b, "slots of 1 ms without a packet", "%missed", all, func(o outcome) float64 { return o.missed })
		compare(b, "error of the gap between packets, median", "us-gap-p50", all, func(o outcome) float64 { return quantile(o.gaps, 0.5) })
		compare(b, "error of the gap between packets, 99 %", "us-gap-p99", all, func(o outcome) float64 { return quantile(o.gaps, 0.99) })
	}
}

type named struct {
	name string
	outcome
}

func compare(b *testing.B, what, unit string, all []named, f func(outcome) float64) {
	b.Helper()
	r := row{what: what, unit: unit, ours: f(all[0].outcome), lower: true}
	for _, n := range all[1:] {
		r.peers = append(r.peers, peer{n.name, f(n.outcome)})
	}
	comparison.add(b, r)
}

// outcome is the result of the packet sockets for a run.
type outcome struct {
	wrong  []time.Duration // |reported - true delay|, sorted
	gaps   []time.Duration // |gap between two packets - slot|, sorted
	missed float64         // percent of the slots
}

// observe captures packets during a measurement. Reported delays and packets are paired in order: the link neither
// loses nor reorders.
func observe(b *testing.B, network *lab.Lab, port uint16, run func() []time.Duration) (o outcome) {
	b.Helper()
	var captures [2]*capture.Capture
	for i, host := range []*lab.Host{network.Client, network.Server} {
		if err := host.Do(func() (err error) { captures[i], err = capture.Open("lan0"); return err }); err != nil {
			b.Fatal(err)
		}
	}
	reported := run()
	var seen [2][]capture.Packet
	for i := range captures {
		packets, err := captures[i].Stop()
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range packets {
			if p.Destination == port && p.Outgoing == (i == 0) && testPacket(p) {
				seen[i] = append(seen[i], p)
			}
		}
	}
	left, arrived := seen[0], seen[1]
	if len(left) != len(arrived) || len(left) < 2 {
		b.Fatalf("captured %d sent and %d received packets, want the same number", len(left), len(arrived))
	}
	if len(left) != len(reported) {
		b.Logf("port %d: %d packets, %d delays reported: not compared", port, len(left), len(reported))
	} else {
		for i := range left {
			o.wrong = append(o.wrong, (reported[i] - arrived[i].At.Sub(left[i].At)).Abs())
		}
	}
	for i := range left[1:] {
		o.gaps = append(o.gaps, (left[i+1].At.Sub(left[i].At) - slot).Abs())
	}
	slices.Sort(o.wrong)
	slices.Sort(o.gaps)
	o.missed = max(0, 100*(1-float64(len(left))/slots))
	return o
}

// testPacket excludes the packets that open and close a session.
func testPacket(p capture.Packet) bool {
	if p.Destination == irttPort {
		return p.Bytes == packetBytes
	}
	head := p.Head[:min(p.Bytes, capture.HeadBytes)]
	if len(head) < stampfmt.UnauthenticatedBytes {
		return false
	}
	for rest := head[stampfmt.UnauthenticatedBytes:]; len(rest) > 0; {
		v, after, err := stampfmt.NextTLV(rest)
		if err != nil {
			return false
		}
		if r, err := stampfmt.ParseReceipt(v.Value); v.Type == stampfmt.TypeReceipt && err == nil && r.StatsQuery {
			return false
		}
		rest = after
	}
	return true
}

// quantile of sorted durations in microseconds; 0 for none.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]) / 1e3
}

// measure runs `oneway probe` in this process, so that the schedule has to be kept with its other threads.
func measure(b *testing.B, network *lab.Lab) []time.Duration {
	b.Helper()
	at := netip.AddrPortFrom(network.Server.LAN4, stampfmt.Port).String()
	remote := ours(b, network.Server, "reflect", at)
	remote.ready(b)
	defer remote.finish(b, nil)
	pacer, err := sched.NewPacer()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- pacer.Run(ctx) }()
	delays := &metrictest.Keeping{}
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: delays, Clock: static.New(time.Microsecond, metric.Discard{}), Pacer: pacer}
	o := stamp.DefaultOptions()
	o.Interval, o.LossTimeout = slot, time.Second
	err = network.Client.Do(func() error {
		p, err := stamp.NewType().NewProber(env, probe.Target{Path: "bench", Probe: "stamp", Peer: at}, o)
		if err != nil {
			return err
		}
		// As many slots as irtt has, even if some are skipped.
		ctx, cancel := context.WithTimeout(ctx, slots*slot)
		defer cancel()
		r, err := p.Measure(ctx, 0, func(stamp.Report) {})
		b.Logf("oneway: %d packets sent, slots skipped: %v", *r.Forward.Sent, r.Skipped)
		return err
	})
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		b.Fatal(err)
	}
	var all []time.Duration
	for _, seconds := range delays.History(metric.Delay, "bench", "stamp", "forward") {
		all = append(all, time.Duration(seconds*1e9))
	}
	return all
}
