package reflector

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/estimate/seqwin"
)

func TestSessionsFitTheMemoryLimit(t *testing.T) {
	for _, c := range []struct {
		limit           int64
		wanted, granted int
	}{
		{-1, 0, DefaultMaxSessions},
		{math.MaxInt64, 0, DefaultMaxSessions},
		{2 << 30, 0, 65_536},
		{64 << 20, 0, 4096},
		{64 << 20, 1 << 20, 4096},
		{64 << 20, 100, 100},
		{1, 0, 256},
	} {
		o := Options{MaxSessions: c.wanted, MemoryLimit: c.limit}
		if err := o.complete(); err != nil || o.MaxSessions != c.granted {
			t.Errorf("limit %d, max_sessions %d: got %d, %v, want %d", c.limit, c.wanted, o.MaxSessions, err, c.granted)
		}
	}
}

func TestMemoryIsReleasedWhenMostSessionsAreClosed(t *testing.T) {
	tab := testTable(10_000)
	var lasting []*session
	for i := range 10_000 {
		s := tab.openFrom(i, 1, 0)
		tab.arrive(s, 0, 0)
		tab.arrive(s, 1, 0)
		if i%20 == 0 {
			lasting = append(lasting, s)
		}
	}
	for _, s := range lasting {
		tab.recordActivity(s, time.Hour)
	}
	if tab.shrink() {
		t.Error("a full table released memory")
	}
	passes := 1
	for ; tab.expire(time.Hour, time.Minute); passes++ {
		tab.check(t)
	}
	if want := 9500/expireAtOnce + 1; passes != want || tab.len() != 500 {
		t.Errorf("got %d sessions after %d passes, want 500 after %d", tab.len(), passes, want)
	}
	if !tab.shrink() || len(tab.free)+len(tab.windows) != 0 {
		t.Errorf("%d sessions and %d windows are kept, want 0", len(tab.free), len(tab.windows))
	}
	tab.check(t)
	for i := range 9500 {
		if s := tab.openFrom(20_000+i, 1, time.Hour); tab.byCookie(s.cookie(s.number())) != s {
			t.Fatal("a session is not found by its cookie")
		}
	}
	tab.check(t)
}

func TestSessionOfOnePacketHasNoWindow(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	r := k.poll(7).receipt
	if r.Next != 8 || r.Base != 8 || r.Received != 1 || r.Lost != 0 || r.Recent[0] != 1 {
		t.Errorf("%+v", r)
	}
	if s := l.s.table.byEpoch[k.epoch]; s.window != nil {
		t.Error("the session has a window")
	}
	if r = k.poll(9).receipt; r.Next != 10 || r.Base != 8 || r.Received != 2 {
		t.Errorf("%+v", r)
	}
}

// greedy makes a window grow as fast as packets can.
func greedy(tab *table, s *session) {
	const step = 16 // one in sixteen is enough
	from := uint32(step * s.received)
	for seq := from; seq < from+2*seqwin.MaxSize; seq += step {
		tab.arrive(s, seq, 0)
	}
}

func TestWindowsGrowWithinTheirQuota(t *testing.T) {
	for sessions, want := range map[int]int{100: 4 << 20, 65_536: 64 << 20} {
		if got := testTable(sessions).growth.Bytes; got != want {
			t.Errorf("windows of %d sessions may grow by %d bytes, want %d", sessions, got, want)
		}
	}
	const sessions = 100
	tab := newTable(sessions, sessions, rand.New(rand.NewPCG(1, 2)).Uint32)
	whole := tab.growth.Bytes
	var mine []*session
	a := netip.MustParseAddr("192.0.2.1")
	for i := range sessions - 1 {
		key := sessionKey{flow: makeFlow(netip.AddrPortFrom(a, uint16(i+1)), netip.Addr{}, 0, false), run: 1}
		s := tab.open(key, tab.sources.get(a, 0), 0, time.Hour)
		greedy(tab, s)
		mine = append(mine, s)
	}
	if used := whole - tab.growth.Bytes; used == 0 || used > whole/8 {
		t.Errorf("sessions on trial: %d of %d bytes, want at most an eighth", used, whole)
	}
	for _, s := range mine {
		tab.promote(s, proven)
		greedy(tab, s)
	}
	if used := whole - tab.growth.Bytes; used <= whole/8 || used > whole/2 {
		t.Errorf("one source: %d of %d bytes, want at most a half", used, whole)
	}
	other := tab.openFrom(1, 1, 0)
	tab.promote(other, proven)
	greedy(tab, other)
	if n := tab.growth.Bytes; n < 0 || whole-n <= whole/2 {
		t.Errorf("quota of another source: %d of %d bytes are free", n, whole)
	}
	tab.rebind(mine[0], sessionKey{makeFlow(addr(1), netip.Addr{}, 9, false), 1}, other.src)
	for s := range tab.byEpoch {
		tab.close(tab.byEpoch[s])
	}
	if tab.growth.Bytes != whole || tab.trials.Bytes != whole/8 {
		t.Errorf("after closing all sessions, %d of %d bytes are free", tab.growth.Bytes, whole)
	}
	for _, src := range tab.sources.byKey {
		if src.windows.Bytes != whole/2 {
			t.Errorf("a source without sessions has %d bytes left, want %d", src.windows.Bytes, whole/2)
		}
	}
}
