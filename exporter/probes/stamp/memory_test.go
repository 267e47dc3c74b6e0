package stamp

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/probes/stamp/ledger"
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
// third, without its series. Every lost-th reply is lost; 0: none.
func bytesOfASession(t *testing.T, o Options, profile metric.Profile, lost int) uint64 {
	t.Helper()
	const sessions = 1000
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	w, clock, peer := newWheel(t), static.New(time.Microsecond, metric.Discard{}), netip.MustParseAddrPort("127.0.0.1:862")
	w.seconds(100, 0)
	w.s.window = w.s.estimator.close(w.s.account.Known())
	shown := w.s.snapshot()
	all, made := make([]*session, sessions), make([]*series, sessions)
	for i := range made {
		made[i] = seriesOf(profile.Scope(metric.Discard{}, "p", "stamp"))
		made[i].publish(&shown) // opens them
	}
	shown = snapshot{}
	before := heapBytes()
	for i := range all {
		s, err := newSession(nil, peer, &o, clock, made[i])
		if err != nil {
			t.Fatal(err)
		}
		s.run = 7
		all[i], w.s, w.at, w.passed = s, s, 0, 0
		perWindow := int(o.Window / o.Interval)
		for range 2 {
			w.seconds(perWindow, lost)
			s.tick(w.now(), w.now())
		}
		w.seconds(perWindow/2, lost)
		if lost == 0 {
			w.check()
		}
	}
	after := heapBytes()
	runtime.KeepAlive(w)
	runtime.KeepAlive(made)
	runtime.KeepAlive(all)
	return (after - before) / sessions
}

// seconds passes n packets through the session, as if they were sent one interval apart.
func (w *wheel) seconds(n, lost int) {
	for range n {
		if lost > 0 && w.at%lost == 1 {
			w.s.account.Send(w.now(), userTime(uint32(w.at)), ledger.ClockThen{})
			w.at++
		} else {
			w.turn()
		}
		w.passed += w.s.opts.Interval
		w.s.account.Tick(w.now(), w.now())
	}
}

func TestMemoryOfASessionIsBounded(t *testing.T) {
	slim := DefaultOptions()
	slim.slim, slim.Codecs = true, nil // as NewProber does
	for _, c := range []struct {
		name    string
		profile metric.Profile
		o       Options
		lost    int
		most    uint64
	}{
		{"slim", metric.Slim, slim, 0, 5200},
		{"slim with losses", metric.Slim, slim, 7, 6000},
		{"full", metric.Full, DefaultOptions(), 0, 7900},
	} {
		if got := bytesOfASession(t, c.o, c.profile, c.lost); got > c.most {
			t.Errorf("%s: %d bytes, want at most %d", c.name, got, c.most)
		} else {
			t.Logf("%s: %d bytes", c.name, got)
		}
	}
}
