package stamp

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/reflector"
)

// TestOverduePacketOvertakenByManyIsLostOnce: 10 of 1500 packets take 900 ms, the loss timeout is 300 ms, and the
// others overtake them at one a millisecond. The remote end has decided each as lost, further back than its bitmap
// reaches.
func TestOverduePacketOvertakenByManyIsLostOnce(t *testing.T) {
	const wait, late = 300 * time.Millisecond, 900 * time.Millisecond
	b := newTestbed(t, reflector.Options{})
	var carrier atomic.Pointer[proxy]
	p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
		if d == sample.Forward && !isStatsQuery(payload) && numberOf(d, payload)%50 == 20 && numberOf(d, payload) < 500 {
			copied := append([]byte(nil), payload...)
			time.AfterFunc(late, func() { _, _ = carrier.Load().remote.Write(copied) })
			return 0, true // slower than the loss timeout: lost (RFC 7680)
		}
		return 0, false
	})
	carrier.Store(p)
	o := quick()
	o.Interval, o.LossTimeout = time.Millisecond, wait
	r := b.to(p.addr).measure(t, o, 1500)
	f := r.Forward
	t.Logf("sent %d received %d lost %d late %d dropped %d outstanding %d", *f.Sent, *f.Received, *f.Lost, *f.Late, *f.HostDropped, *f.Outstanding)
	p.check(t, r, wait)
	if *f.Late != 10 {
		t.Errorf("got %d late, want 10", *f.Late)
	}
}

// TestUnansweredPacketsAreOverdueAsOftenAsTheOthers: 280 of 400 packets take twice the loss timeout forward, and 40
// % of the replies are lost.
func TestUnansweredPacketsAreOverdueAsOftenAsTheOthers(t *testing.T) {
	const wait, n, slow = 150 * time.Millisecond, 400, 120
	b := newTestbed(t, reflector.Options{})
	p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
		switch {
		case isStatsQuery(payload):
		case d == sample.Reverse:
			return 0, numberOf(d, payload)%5 < 2
		case numberOf(d, payload) >= slow:
			return 2 * wait, false
		}
		return 0, false
	})
	o := quick()
	o.Interval, o.LossTimeout = 5*time.Millisecond, wait
	f := b.to(p.addr).measure(t, o, n).Forward
	if received, lost, _ := p.truth(sample.Forward, wait); lost < n-slow {
		t.Fatalf("proxy log: %d received and %d lost, want %d lost at least", received, lost, n-slow)
	}
	if f.Delay == nil || f.Delay.P50 != nil {
		t.Errorf("more than half of the delays are infinite, but the median is finite: %s", asJSON(t, f))
	}
}

// TestStallInAnotherOrderIsOneRun: a stall delivers its packets in random order.
func TestStallInAnotherOrderIsOneRun(t *testing.T) {
	for _, dir := range sample.Directions() {
		b := newTestbed(t, reflector.Options{})
		var carrier atomic.Pointer[proxy]
		var held [][]byte
		p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
			n := numberOf(d, payload)
			if d != dir || isStatsQuery(payload) || n < 100 || n >= 200 {
				return 0, false
			}
			held = append(held, append([]byte(nil), payload...))
			if n < 199 {
				return 0, true // slower than the loss timeout
			}
			p := carrier.Load()
			for _, copied := range held { // a busy host may have sent them in more than the time of their schedule
				time.AfterFunc(1500*time.Millisecond+time.Duration(rand.IntN(10_000_000)), func() {
					if d == sample.Forward {
						_, _ = p.remote.Write(copied)
						return
					}
					p.mu.Lock()
					to := p.client
					p.mu.Unlock()
					_, _ = p.local.WriteToUDPAddrPort(copied, to)
				})
			}
			return 0, true
		})
		carrier.Store(p)
		o := quick()
		o.Interval, o.LossTimeout = 4*time.Millisecond, time.Second // a busy host may add some delay
		r := b.to(p.addr).measure(t, o, 500)
		got := []DirectionReport{r.Forward, r.Reverse}[dir]
		// one run of 100 in 500
		if got.BurstRatio == nil || *got.BurstRatio < 79 || *got.BurstRatio > 81 || *got.Lost != 100 {
			t.Errorf("%v: lost %d late %d, got BurstR %s; want 100, one run, 80", dir, *got.Lost, *got.Late, asJSON(t, got.BurstRatio))
		} else {
			t.Logf("%v: BurstR %.1f", dir, *got.BurstRatio)
		}
	}
}
