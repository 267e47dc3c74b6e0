package stamp

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sched"
)

// heapBytes is the live heap.
func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second one frees what finalizers and pools kept
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// bytesOfASession is the memory of each of 1,000 sessions with options o after two windows of packets and half of a
// third, without its series.
func bytesOfASession(t *testing.T, o Options, profile metric.Profile) uint64 {
	t.Helper()
	const sessions = 1000
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	w, clock, peer := newWheel(t), static.New(time.Microsecond, metric.Discard{}), netip.MustParseAddrPort("127.0.0.1:862")
	w.seconds(100)
	w.s.window = w.s.estimator.close(w.s.account.known())
	shown := w.s.snapshot()
	all, made := make([]*session, sessions), make([]*series, sessions)
	for i := range made {
		made[i] = newSeries(profile.Sink(metric.Discard{}), "p", "stamp")
		made[i].publish(&shown) // opens them
	}
	shown = snapshot{}
	before := heapBytes()
	for i := range all {
		s, err := newSession(nil, peer, &o, clock, made[i])
		if err != nil {
			t.Fatal(err)
		}
		s.run, s.account.statsQuery.opened = 7, true
		all[i], w.s, w.at = s, s, 0
		perWindow := int(o.Window / o.Interval)
		for range 2 {
			w.seconds(perWindow)
			s.windowFrom -= o.Window
			s.tick(sched.Now(), sched.Now())
		}
		w.seconds(perWindow / 2)
		w.check()
	}
	after := heapBytes()
	runtime.KeepAlive(w)
	runtime.KeepAlive(made)
	runtime.KeepAlive(all)
	return (after - before) / sessions
}

// seconds passes n packets through the session, as if they were sent one interval apart.
func (w *wheel) seconds(n int) {
	sent := &w.s.account.outstandingPackets
	for range n {
		w.turn()
		for i := range sent.ring {
			sent.ring[i].sent -= w.s.opts.Interval
		}
		w.s.account.expire(sched.Now())
	}
}

func TestMemoryOfASessionIsBounded(t *testing.T) {
	slim := DefaultOptions()
	slim.slim, slim.Codecs = true, nil // as NewProber does
	for _, c := range []struct {
		profile metric.Profile
		o       Options
		most    uint64
	}{{metric.Slim, slim, 6000}, {metric.Full, DefaultOptions(), 8000}} {
		if got := bytesOfASession(t, c.o, c.profile); got > c.most {
			t.Errorf("%v: %d bytes, want at most %d", c.profile, got, c.most)
		} else {
			t.Logf("%v: %d bytes", c.profile, got)
		}
	}
}
