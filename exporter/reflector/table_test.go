package reflector

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/tests/testseed"
)

func testTable(most int) *table {
	return newTable(most, most/2, rand.New(rand.NewPCG(1, 2)).Uint32)
}

// addr is the i-th of many addresses of different sources.
func addr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), uint16(1024+i%50000))
}

func (t *table) openFrom(i int, run uint64, now time.Duration) *session {
	a := addr(i)
	key := sessionKey{flow: makeFlow(a, netip.Addr{}, 7, false), run: run}
	return t.open(key, t.sources.get(a.Addr(), now), now, time.Second)
}

// check compares all indexes of the table.
func (t *table) check(tb testing.TB) {
	tb.Helper()
	total := 0
	for i := range t.rings {
		n := 0
		for p := t.rings[i].root.next; p != &t.rings[i].root; p = p.next {
			n++
			s := p.of
			switch {
			case t.byKey[s.key] != s:
				tb.Fatalf("session of epoch %#x is not found by its key", s.epoch)
			case s.epoch == 0 || t.byEpoch[s.epoch] != s:
				tb.Fatalf("session of epoch %#x is not found by it", s.epoch)
			case s.src == nil || t.sources.byKey[s.src.key] != s.src:
				tb.Fatalf("session of epoch %#x has a source that is not in the table", s.epoch)
			case s.tier != tier(i):
				tb.Fatalf("session of tier %d is in ring %d", s.tier, i)
			}
		}
		if n != t.rings[i].n {
			tb.Fatalf("ring %d has %d sessions, its count is %d", i, n, t.rings[i].n)
		}
		total += n
	}
	idles, owned := 0, 0
	for _, src := range t.sources.byKey {
		owned += src.sessions
		if s := src.only(); s != nil && (s.src != src || src.sessions != 1) {
			tb.Fatalf("the only session of a source with %d sessions belongs to another source", src.sessions)
		}
		if src.sessions == 0 {
			idles++
		}
	}
	switch {
	case total != len(t.byKey), owned != total, len(t.byEpoch) != total:
		tb.Fatalf("%d sessions in rings, %d by key, %d by epoch, %d owned", total, len(t.byKey), len(t.byEpoch), owned)
	case idles != t.sources.idle.n || idles > t.sources.maxIdle:
		tb.Fatalf("%d idle sources, count %d, limit %d", idles, t.sources.idle.n, t.sources.maxIdle)
	case total > t.max, len(t.byFlow) > total:
		tb.Fatalf("%d sessions, limit %d; %d flows", total, t.max, len(t.byFlow))
	}
}

func TestTableEvictsTheOldestOnTrial(t *testing.T) {
	tab := testTable(4)
	for i := range 4 {
		tab.openFrom(i, 1, time.Duration(i))
	}
	tab.recordActivity(tab.byKey[sessionKey{makeFlow(addr(0), netip.Addr{}, 7, false), 1}], 10)
	tab.openFrom(4, 1, 11)
	tab.check(t)
	for i, want := range []bool{true, false, true, true, true} {
		if _, have := tab.byKey[sessionKey{makeFlow(addr(i), netip.Addr{}, 7, false), 1}]; have != want {
			t.Errorf("session %d exists: %v, want %v", i, have, want)
		}
	}
}

func TestFloodCannotEvictProvenSessions(t *testing.T) {
	tab := testTable(100)
	var mine []*session
	for i := range 60 {
		s := tab.openFrom(i, 1, 0)
		tab.promote(s, proven)
		mine = append(mine, s)
	}
	for i := range 10_000 {
		if tab.openFrom(1000+i, 2, time.Duration(i)) == nil {
			t.Fatalf("new session %d was refused with 40 sessions on trial", i)
		}
	}
	tab.check(t)
	for i, s := range mine {
		if tab.byKey[s.key] != s {
			t.Fatalf("evicted proven session %d", i)
		}
	}
}

func TestFullTableOfProvenSessionsRefusesNewOnes(t *testing.T) {
	tab := testTable(10)
	for i := range 10 {
		tab.promote(tab.openFrom(i, 1, 0), proven)
	}
	if tab.openFrom(99, 1, 1) != nil {
		t.Error("a new session evicted a proven one")
	}
	tab.check(t)
	tab.expire(time.Hour, time.Minute)
	if tab.len() != 0 {
		t.Errorf("%d sessions remain after their expiry", tab.len())
	}
	if tab.openFrom(99, 1, time.Hour) == nil {
		t.Error("no new session after all expired")
	}
	tab.check(t)
}

func TestOneSourceMayHoldHalfTheTable(t *testing.T) {
	tab := testTable(10)
	a := netip.MustParseAddr("192.0.2.1")
	opened := 0
	for port := range 20 {
		key := sessionKey{flow: makeFlow(netip.AddrPortFrom(a, uint16(port+1)), netip.Addr{}, 0, false)}
		if tab.open(key, tab.sources.get(a, 0), 0, time.Second) != nil {
			opened++
		}
	}
	if opened != 5 {
		t.Errorf("one source has %d sessions of 10, want 5", opened)
	}
	tab.check(t)
}

func TestExcessEstablishedSessionsReturnToTrial(t *testing.T) {
	tab := testTable(40)
	for i := range 30 {
		s := tab.openFrom(i, 0, 0)
		s.received = establishedPackets
		tab.recordActivity(s, establishedAge)
	}
	tab.check(t)
	if n := tab.rings[established].n; n != 10 {
		t.Errorf("%d sessions are established, want a quarter of 40", n)
	}
}

func TestOnlyReturnsTheOneSessionOfASource(t *testing.T) {
	tab := testTable(8)
	now := time.Duration(0)
	open := func(port uint16) *session {
		a := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), port)
		key := sessionKey{flow: makeFlow(a, netip.Addr{}, 1, false), run: uint64(port)}
		return tab.open(key, tab.sources.get(a.Addr(), now), now, time.Second)
	}
	one := open(1)
	src := one.src
	if src.only() != one {
		t.Error("only() does not return the one session")
	}
	two := open(2)
	if s := src.only(); s != nil {
		t.Errorf("only() of two sessions returned %v", s.key.port)
	}
	tab.close(one) // the older one, as on expiry
	if src.only() != two {
		t.Error("only() does not return the remaining session")
	}
	tab.close(two)
	if src.only() != nil || (*source)(nil).only() != nil {
		t.Error("only() of no sessions returned one")
	}
}

func TestIPv6SourceIsItsSlash64(t *testing.T) {
	st := newSourceTable(10, &seqwin.Quota{})
	a := st.get(netip.MustParseAddr("2001:db8:0:1::1"), 0)
	if b := st.get(netip.MustParseAddr("2001:db8:0:1:ffff::2"), 0); a != b {
		t.Error("two hosts of one /64 are two sources")
	}
	if b := st.get(netip.MustParseAddr("2001:db8:0:2::1"), 0); a == b {
		t.Error("two /64 are one source")
	}
	if st.get(netip.MustParseAddr("192.0.2.1"), 0) == st.get(netip.MustParseAddr("192.0.2.2"), 0) {
		t.Error("two IPv4 hosts are one source")
	}
}

func TestTableStaysConsistentUnderRandomUse(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	tab := newTable(50, 25, rng.Uint32)
	tab.sources = newSourceTable(8, &tab.growth)
	now := time.Duration(0)
	for step := range 20_000 {
		now += time.Duration(rng.IntN(100)) * time.Millisecond
		key := sessionKey{makeFlow(addr(rng.IntN(120)), netip.Addr{}, uint16(rng.IntN(2)), false), uint64(rng.IntN(3))}
		a := netip.AddrFrom16(key.peer).Unmap()
		src := tab.sources.get(a, now)
		s := tab.byKey[key]
		if s == nil {
			s = tab.open(key, src, now, time.Second)
		}
		if s == nil {
			continue
		}
		s.received++
		switch rng.IntN(8) {
		case 0:
			tab.promote(s, tier(rng.IntN(tiers)))
		case 1:
			tab.close(s)
		case 2:
			to := addr(200 + rng.IntN(50))
			moved := sessionKey{makeFlow(to, netip.Addr{}, key.ssid, false), key.run}
			if tab.byKey[moved] == nil {
				tab.rebind(s, moved, tab.sources.get(to.Addr(), now))
			}
		case 3:
			if s.key.run == 0 {
				run := uint64(rng.Uint32()) + 10
				tab.setRun(s, run)
			}
		case 4:
			tab.expire(now, 20*time.Second)
		default:
			tab.recordActivity(s, now)
		}
		if step%100 == 0 {
			tab.check(t)
		}
	}
	tab.check(t)
}

func TestCookieOfAClosedSessionFindsNothing(t *testing.T) {
	tab := testTable(4)
	s := tab.openFrom(1, 1, 0)
	cookie := s.cookie(s.number())
	if tab.byCookie(cookie) != s {
		t.Fatal("the session is not found by its cookie")
	}
	tab.close(s)
	if tab.byCookie(cookie) != nil {
		t.Error("a closed session is found by its cookie")
	}
	if again := tab.openFrom(2, 1, 0); again != s || tab.byCookie(cookie) != nil {
		t.Error("the old cookie finds the session that reuses the memory")
	}
	for _, c := range []uint64{0, 1, 1 << 40, 1<<64 - 1} {
		tab.byCookie(c) // must not panic
	}
}

func TestMoreSessionsHaveMoreSpaceForTheirWindows(t *testing.T) {
	if got := testTable(maxMaxSessions).growth.Bytes; got < 1<<30 {
		t.Errorf("%d bytes", got)
	}
}
