package ledger

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// TestRingHoldsThePacketsOfTwiceTheLossTimeout: none is given up for lack of space at any permitted rate, also if
// replies and the periodic work come only once a second, and its state survives the growth of the ring.
// shortest is the least interval of a session.
const shortest = 100 * time.Microsecond

func TestRingHoldsThePacketsOfTwiceTheLossTimeout(t *testing.T) {
	for _, c := range []struct{ interval, timeout time.Duration }{
		{shortest, MaxOutstanding * shortest},
		{shortest, 10 * time.Millisecond},
		{time.Millisecond, time.Minute},
		{time.Second, 3 * time.Second},
		{time.Second, time.Minute},
		{time.Hour, time.Minute},
	} {
		f, now, ticked, expired := outstandingPacketsOf(c.interval, c.timeout), time.Duration(0), time.Duration(0), 0
		first := len(f.ring)
		packets := uint64(5 * (c.timeout + TickInterval) / c.interval)
		for seq := range max(packets, 100) {
			now += c.interval
			if lost := f.add(seq, now, instant.Time(seq+1), ClockThen{}); lost != 0 {
				t.Fatalf("%+v: packet %d pushes out %d of %d", c, seq, lost, len(f.ring))
			}
			f.get(seq).stamped(sample.Stamp{At: instant.Time(seq + 2), Origin: sample.Kernel})
			if now-ticked >= TickInterval {
				ticked = now
				expired += f.expire(now, c.timeout)
			}
		}
		f.expire(now, c.timeout)
		for seq := f.next; seq > 0 && f.next-seq < uint64(2*c.timeout/c.interval); seq-- {
			if e := f.get(seq - 1); e == nil || e.user != instant.Time(seq) || e.SentAt().At != instant.Time(seq+1) {
				t.Fatalf("%+v: packet %d is %+v, sent %v ago", c, seq-1, e, time.Duration(f.next-seq)*c.interval)
			}
		}
		if len(f.ring) > max(2*first, int(f.most)) || f.unheard > uint32(len(f.ring)) {
			t.Errorf("%+v: %d places, %d at the start, %d without a reply", c, len(f.ring), first, f.unheard)
		}
	}
}

// TestRingGrowsForABurst: a Poisson session sends twice as many packets as usual. One was withdrawn before.
func TestRingGrowsForABurst(t *testing.T) {
	f := outstandingPacketsOf(time.Second, 3*time.Second)
	if len(f.ring) != minOutstandingPackets {
		t.Fatalf("%d places, want %d", len(f.ring), minOutstandingPackets)
	}
	for seq := range uint64(20) { // at rest
		f.add(seq, time.Duration(seq)*time.Second, 1, ClockThen{})
		f.reply(f.get(seq), packetReplied)
		f.expire(time.Duration(seq)*time.Second, 3*time.Second)
	}
	if len(f.ring) != minOutstandingPackets || f.unheard != 0 {
		t.Fatalf("%d places, %d without a reply; want %d and none", len(f.ring), f.unheard, minOutstandingPackets)
	}
	f.add(20, 20*time.Second, 1, ClockThen{})
	f.withdraw(20)
	for seq := uint64(20); seq < 29; seq++ {
		if lost := f.add(seq, 20*time.Second, 1, ClockThen{}); lost != 0 {
			t.Errorf("packet %d pushes out %d", seq, lost)
		}
	}
	if len(f.ring) != fullOutstandingPackets || f.unheard != 9 || f.outstanding() != 9 {
		t.Errorf("%d places, %d without a reply, %d outstanding; want %d, 9, 9", len(f.ring), f.unheard, f.outstanding(), fullOutstandingPackets)
	}
	for seq := uint64(13); seq < 29; seq++ {
		if e := f.get(seq); e == nil || e.unheard() != (seq >= 20) {
			t.Errorf("packet %d: %+v", seq, e)
		}
	}
}

func TestPacketsAtTheHighestRateAllocateNothing(t *testing.T) {
	f, now, seq := outstandingPacketsOf(shortest, time.Second), time.Duration(0), uint64(0)
	second := func() {
		for range int(time.Second / shortest) {
			now += shortest
			f.add(seq, now, 1, ClockThen{})
			seq++
		}
		f.expire(now, time.Second)
	}
	for range 5 {
		second()
	}
	if n := testing.AllocsPerRun(5, second); n != 0 {
		t.Errorf("%v allocations in a second, want 0", n)
	}
}
