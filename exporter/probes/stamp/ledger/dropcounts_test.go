package ledger

import (
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/wire/stampfmt"
)

func TestLossesAreTheHostsOnlyAsFarAsItsSocketDropped(t *testing.T) {
	var d Drops
	const keep = 3 * time.Second
	d.Update(1000, 0) // before this measurement
	if n := d.Take(50, time.Second, keep); n != 0 {
		t.Errorf("%d losses attributed to earlier drops, want 0", n)
	}
	d.Update(1010, time.Second)
	if n := d.Take(4, 2*time.Second, keep); n != 4 {
		t.Errorf("%d of 4 losses attributed, want all", n)
	}
	if n := d.Take(50, 3*time.Second, keep); n != 6 {
		t.Errorf("%d of 50 losses attributed, want the 6 remaining drops", n)
	}
	d.Update(1020, 4*time.Second)
	if n := d.Take(5, 8*time.Second, keep); n != 0 {
		t.Errorf("%d losses attributed to drops of 4 s ago, want 0", n)
	}
	d.Update(7, 9*time.Second) // another socket's total
	if n := d.Take(5, 9*time.Second, keep); n != 0 {
		t.Errorf("%d losses attributed to a total that fell, want 0", n)
	}
}

func TestDropsAreSharedOutOnce(t *testing.T) {
	var d Drops
	d.Update(0, 0)
	d.Update(1000, 0)
	var all sync.WaitGroup
	taken := make([]uint64, 8)
	for i := range taken {
		all.Go(func() {
			for range 300 {
				taken[i] += d.Take(1, 0, time.Second)
			}
		})
	}
	all.Wait()
	sum := uint64(0)
	for _, n := range taken {
		sum += n
	}
	if sum != 1000 {
		t.Errorf("%d drops attributed, want 1000", sum)
	}
}

// TestBooksBalanceWithDropsAndLatePackets covers all outcomes of a packet.
func TestBooksBalanceWithDropsAndLatePackets(t *testing.T) {
	d, _ := countsOf(sample.Reverse)
	var w seqwin.Window
	dropped := func(lost uint64) uint64 { return min(lost, 2) }
	for n := range uint64(100) {
		if n%10 == 3 || n >= 97 {
			continue
		}
		w.Add(n, 0)
	}
	d.now.sent = 100
	w.Finish(60, 0)
	d.count(w.Counts(), seqwin.RecentBits, dropped)
	for n := uint64(20); n < 25; n++ {
		d.tooLate(n) // 23 was lost, but the receiver of this test reports otherwise
	}
	w.Finish(97, 0)
	d.count(w.Counts(), seqwin.RecentBits, dropped)
	got := d.now
	if got.dropped != 4 || got.lost != 10+5-4 || got.received != 87-5 || got.late != 5 || got.outstanding() != 3 {
		t.Errorf("%+v, %d outstanding", got, got.outstanding())
	}
	d.missed(got.outstanding())
	d.restart()
	d.now.sent = 110
	w.Reset()
	for n := range uint64(10) {
		w.Add(n, 0)
	}
	d.count(w.Counts(), seqwin.RecentBits, dropped)
	if got := d.now; got.received != 92 || got.lost != 14 || got.dropped != 4 || got.outstanding() != 0 {
		t.Errorf("after a restart: %+v, %d outstanding", got, got.outstanding())
	}
}

// TestDropsExplainLossesDecidedLongAfterThem: this host's socket drops the replies to some requests in a row. Their loss
// is decided one loss timeout after the next reply, by a tick that may be late on a busy host.
func TestDropsExplainLossesDecidedLongAfterThem(t *testing.T) {
	for _, c := range []struct {
		interval, busy time.Duration
		inARow         uint32
	}{
		{time.Second, time.Second, 1},
		{time.Second, 6 * time.Second, 1},
		{time.Second, time.Second, 40},
		{30 * time.Second, time.Second, 3},
	} {
		now := time.Hour
		a := idleAccountOf(now)
		a.opts.Interval, a.opts.LossTimeout = c.interval, 3*time.Second
		asks(a, 100)
		var d Drops
		d.Begin()
		a.dropped = func(lost uint64, ago time.Duration) uint64 { return d.Take(lost, now, ago) }
		next := uint32(0)
		reply := func() {
			now += c.interval
			a.number(&stampfmt.ReflectorPacket{Seq: next}, Request{}, now, false)
			a.now, a.lateMillis = now, 0 // of the last tick
			next++
		}
		for range 5 {
			reply()
		}
		d.Update(uint64(c.inARow), now)
		now += time.Duration(c.inARow) * c.interval
		next += c.inARow
		reply()
		now += a.opts.LossTimeout + c.busy
		a.expire(now)
		if got := a.rev.now; got.dropped != uint64(c.inARow) || got.lost != 0 {
			t.Errorf("%d dropped in a row at an interval of %v, decided %v late: %d lost and %d dropped; want all dropped", c.inARow, c.interval, c.busy, got.lost, got.dropped)
		}
		// A loss without a drop is one of the path.
		before := a.rev.now.lost
		next++
		reply()
		now += a.opts.LossTimeout + c.busy
		if a.expire(now); a.rev.now.lost != before+1 {
			t.Errorf("%d lost after the drops, want 1", a.rev.now.lost-before)
		}
	}
}

// TestDropsExplainOnlyLossesThatTheyMayHaveCaused: a drop every 20 s of a packet that is not of this path explains no
// loss of the path that was decided in time and began long after the drop.
func TestDropsExplainOnlyLossesThatTheyMayHaveCaused(t *testing.T) {
	for _, c := range []struct {
		after   time.Duration // from the drop to the next reply after the lost one
		dropped uint64
	}{{time.Second, 1}, {4 * time.Second, 0}, {10 * time.Second, 0}} {
		now := time.Hour
		a := idleAccountOf(now)
		a.opts.Interval, a.opts.LossTimeout = time.Second, 3*time.Second
		asks(a, 100)
		var d Drops
		d.Begin()
		a.dropped = func(lost uint64, ago time.Duration) uint64 { return d.Take(lost, now, ago) }
		next := uint32(0)
		seconds := func(n int) {
			for range n {
				now += time.Second
				a.number(&stampfmt.ReflectorPacket{Seq: next}, Request{}, now, false)
				a.expire(now)
				next++
			}
		}
		seconds(5)
		d.Update(1, now)
		seconds(int(c.after/time.Second) - 1)
		next++ // lost
		seconds(6)
		if got := a.rev.now; got.dropped != c.dropped || got.lost != 1-c.dropped {
			t.Errorf("%v after a drop: %d lost and %d dropped, want %d dropped", c.after, got.lost, got.dropped, c.dropped)
		}
	}
}
