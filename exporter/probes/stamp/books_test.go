package stamp

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
)

func idleSession(t *testing.T) *session {
	t.Helper()
	o := quick()
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	s, err := newSession(nil, netip.MustParseAddrPort("127.0.0.1:862"), &o, static.New(50*time.Microsecond, metric.Discard{}), newSeries(metric.Discard{}, "p", "stamp"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPDVOfALongRunIsFineThoughTheFirstPacketWasSlow: above 65,536 packets PDV comes from a histogram.
func TestPDVOfALongRunIsFineThoughTheFirstPacketWasSlow(t *testing.T) {
	var c collector
	rng := rand.New(rand.NewPCG(1, 2))
	add := func(d time.Duration) { c.add(&record.Packet{Forward: plain(d)}) }
	add(1500 * time.Millisecond) // the first packet waited for ARP, or a route
	for range 70_000 {
		add(10*time.Millisecond + time.Duration(rng.IntN(100_000)))
	}
	above := c.delays[sample.Forward].Snapshot()
	all := spreadLike(above, above, above.Min)
	d := all.distribution()
	if *d.P50 > 60e-6 || *d.P50 < 40e-6 || *d.P99 > 110e-6 {
		t.Errorf("PDV: got p50 %.6f p95 %.6f p99 %.6f s; want 0.000050 0.000095 0.000099", *d.P50, *d.P95, *d.P99)
	}
}

// A hub ticks the sessions of a list made earlier: one of them may have ended, with its series closed.
func TestEndedSessionPublishesNothing(t *testing.T) {
	s, book := idleSession(t), &metrictest.Sink{}
	s.series = newSeries(book, "p", "stamp")
	s.end()
	s.series.scope.Close()
	now := sched.Now() + time.Second
	s.tick(now, now) // writing to a closed series panics
	if book.Open() > 0 {
		t.Errorf("published after the end: %v", book.Present(""))
	}
}
