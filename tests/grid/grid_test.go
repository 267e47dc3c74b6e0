// Package grid holds every count and every delay that oneway reports against
// the emulated link's own log, over a grid of faults.
package grid

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/reflector"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	wire "oneway.example/exporter/wire/stamp"
	"oneway.example/tests/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

const reflectorPort = 862

func TestAllCountsEqualTheLinksLog(t *testing.T) {
	lab.Require(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, loss := range []float64{0, 0.02, 0.20} {
		for _, duplicate := range []float64{0, 0.05} {
			for _, reorder := range []float64{0, 0.03} {
				for _, corrupt := range []float64{0, 0.01} {
					name := fmt.Sprintf("loss=%g/duplicate=%g/reorder=%g/corrupt=%g", loss, duplicate, reorder, corrupt)
					link := lab.Link{Delay: 5 * time.Millisecond, Loss: loss, Duplicate: duplicate, Reorder: reorder, Corrupt: corrupt}
					seed++
					t.Run(name, func(t *testing.T) { compare(t, link, seed) })
				}
			}
		}
	}
}

// packets of one run, enough for every fault of the grid to occur.
const (
	packets  = 1000
	interval = 2 * time.Millisecond
	wait     = 400 * time.Millisecond
)

func compare(t *testing.T, link lab.Link, seed uint64) {
	network := lab.Start(t, lab.Options{
		Profile: lab.Profile{Name: "grid", Forward: link, Reverse: link}, Seed: seed,
		Classifier: testPacket, SpareOthers: true,
	})
	report := measure(t, network, nil)
	if err := network.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report.Reflector != "oneway" {
		t.Fatalf("reflector %q", report.Reflector)
	}
	for _, d := range []struct {
		direction sample.Direction
		got       stamp.DirectionReport
	}{{sample.Forward, report.Forward}, {sample.Reverse, report.Reverse}} {
		want := truthOf(network.Log(d.direction), wait)
		got := counted(t, d.got)
		if got != want {
			t.Errorf("seed %d, %s:\n got %+v\nwant %+v", seed, d.direction, got, want)
		}
		t.Logf("%s: %+v", d.direction, got)
		if got.sent != got.received+got.lost+got.inFlight {
			t.Errorf("%s: %d sent, but %d received, %d lost, %d in flight", d.direction, got.sent, got.received, got.lost, got.inFlight)
		}
		if d.got.Negative != 0 {
			t.Errorf("%s: %d negative delays", d.direction, d.got.Negative)
		}
		checkDelay(t, d.direction, d.got, network.Log(d.direction))
	}
}

// counts are the integers that must be equal.
type counts struct{ sent, received, lost, duplicated, reordered, corrupted, late, inFlight uint64 }

func counted(t *testing.T, d stamp.DirectionReport) counts {
	t.Helper()
	for _, p := range []*uint64{d.Sent, d.Received, d.Lost, d.Duplicated, d.Reordered, d.Corrupted, d.Late, d.InFlight} {
		if p == nil {
			t.Fatal("a count is absent although the far end is ours")
		}
	}
	return counts{*d.Sent, *d.Received, *d.Lost, *d.Duplicated, *d.Reordered, *d.Corrupted, *d.Late, *d.InFlight}
}

// truthOf counts by the RFCs' own words, from the link's log: RFC 7680 (no
// uncorrupted copy in time is a loss), RFC 5560 (further good copies are
// duplicates), RFC 4737 (a first good copy below the next expected number is
// reordered).
func truthOf(log []lab.Record, wait time.Duration) (c counts) {
	c.sent = uint64(len(log))
	type arrival struct {
		key  uint64
		good bool
		at   int64
	}
	var arrivals []arrival
	for _, r := range log {
		if r.Fate != lab.Delivered {
			continue
		}
		arrivals = append(arrivals, arrival{r.Key, !r.Corrupted, int64(r.Exit.Middle())})
		if r.Duplicated {
			arrivals = append(arrivals, arrival{r.Key, !r.Corrupted, int64(r.Copy.Middle())})
		}
	}
	slices.SortFunc(arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	seen, next := map[uint64]bool{}, uint64(0)
	for _, a := range arrivals {
		switch {
		case !a.good:
			c.corrupted++
		case seen[a.key]:
			c.duplicated++
		default:
			seen[a.key] = true
			c.received++
			if a.key < next {
				c.reordered++
			}
			next = max(next, a.key+1)
		}
	}
	c.lost = c.sent - c.received
	return c
}

// checkDelay holds the smallest and the largest reported delay against the
// log: each must lie within its bound of some packet's truth.
func checkDelay(t *testing.T, d sample.Direction, got stamp.DirectionReport, log []lab.Record) {
	t.Helper()
	if got.Delay == nil {
		t.Fatalf("%s: no delay", d)
	}
	least, most := time.Duration(1<<62), time.Duration(0)
	// Where the link's own thread was held up, so may have been the hosts, between
	// a packet's stamp and the wire.
	stall := time.Duration(0)
	for _, r := range log {
		if r.Fate == lab.Delivered {
			stall = max(stall, r.Late())
		}
		if r.Fate == lab.Delivered && !r.Corrupted {
			least, most = min(least, r.Delay()), max(most, r.Delay())
		}
	}
	bound := time.Duration(*got.Delay.ErrorBound*1e9) + time.Microsecond
	if v := seconds(*got.Delay.Min); v < least-bound || v > least+bound+time.Millisecond {
		t.Errorf("%s: smallest delay %v, the link's %v, bound %v", d, v, least, bound)
	}
	if v := seconds(*got.Delay.Max); v > most+bound+stall {
		t.Errorf("%s: largest delay %v, the link's %v, bound %v, held up by %v", d, v, most, bound, stall)
	}
}

func seconds(v float64) time.Duration { return time.Duration(v * 1e9) }

// testPacket picks STAMP test packets and their answers by their own number;
// queries are no test packets.
func testPacket(payload []byte, src, dst netip.AddrPort) (key uint64, ok bool) {
	if src.Port() != reflectorPort && dst.Port() != reflectorPort {
		return 0, false
	}
	p, err := wire.ParseSender(payload)
	if err != nil || len(payload) < wire.UnauthenticatedBytes {
		return 0, false
	}
	for rest := payload[wire.UnauthenticatedBytes:]; len(rest) > 0; {
		var v wire.TLV
		if v, rest, err = wire.NextTLV(rest); err != nil {
			return 0, false
		}
		if r, err := wire.ParseReceipt(v.Value); v.Type == wire.TypeReceipt && err == nil && r.Query {
			return 0, false
		}
	}
	return uint64(p.Seq), true
}

// measure runs a reflector on the server and a sender on the client.
func measure(t *testing.T, network *lab.Lab, each func(sample.Packet, sample.Delay, sample.Delay)) (report stamp.Report) {
	t.Helper()
	// Both hosts share one clock; the bound covers what a shared, virtual machine
	// does between the stamp at a driver and the one at its peer.
	monitor := static.New(500*time.Microsecond, metric.Discard{})
	log := slog.New(slog.DiscardHandler)
	r, err := reflector.New(reflector.Options{
		Listen: []netip.AddrPort{netip.AddrPortFrom(network.Server.Addr4, reflectorPort)}, LossWait: wait,
	}, reflector.Env{Log: log, Sink: metric.Discard{}, Clock: monitor})
	if err != nil {
		t.Fatal(err)
	}
	pacer, err := sched.NewPacer()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 3)
	go func() { done <- network.Server.Do(func() error { return r.Run(ctx) }) }()
	go func() { done <- pacer.Run(ctx) }()
	go func() { done <- monitor.Run(ctx) }()
	defer func() {
		cancel()
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}()
	<-r.Started()
	o := stamp.DefaultOptions()
	o.Interval, o.LossTimeout = interval, wait
	env := probe.Env{Log: log, Sink: metric.Discard{}, Clock: monitor, Pacer: pacer}
	target := probe.Target{Path: "grid", Probe: "stamp", Peer: netip.AddrPortFrom(network.Server.Addr4, reflectorPort).String()}
	err = network.Client.Do(func() error {
		p, err := stamp.New().NewProber(env, target, o)
		if err != nil {
			return err
		}
		p.OnPacket = each
		report, err = p.Measure(ctx, packets, func(stamp.Report) {})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}
