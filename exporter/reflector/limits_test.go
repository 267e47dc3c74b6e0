package reflector

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/net/wire/stampfmt"
)

func TestBucketAllowsBurstThenRate(t *testing.T) {
	l := newLimit(100, 10)
	var b bucket
	taken := 0
	for range 50 {
		if b.take(l, 0) {
			taken++
		}
	}
	if taken != 10 {
		t.Errorf("passed %d packets at once, want the burst of 10", taken)
	}
	taken = 0
	for now := time.Duration(0); now < 10*time.Second; now += time.Millisecond {
		if b.take(l, now) {
			taken++
		}
	}
	if taken < 999 || taken > 1001 {
		t.Errorf("passed %d packets in 10 s, want 1000 +- 1", taken)
	}
}

func TestBucketRefillsWhileIdle(t *testing.T) {
	l := newLimit(10, 3)
	var b bucket
	for range 3 {
		b.take(l, 0)
	}
	if b.take(l, 0) {
		t.Fatal("passed a fourth packet at once, want the burst of 3")
	}
	taken := 0
	for range 10 {
		if b.take(l, time.Hour) {
			taken++
		}
	}
	if taken != 3 {
		t.Errorf("after an idle hour passed %d packets at once, want the burst of 3", taken)
	}
}

func TestZeroLimitAllowsAll(t *testing.T) {
	for _, rate := range []int{0, -1} {
		var b bucket
		for range 1000 {
			if !b.take(newLimit(rate, 1), 0) {
				t.Fatalf("rate %d refused a packet", rate)
			}
		}
	}
}

// begun counts the sessions of n addresses that may open at one time.
func begun(n *newSessionLimit, now time.Duration, count int, address func(i int) string) (taken int) {
	for i := range count {
		if n.take(netip.MustParseAddr(address(i)), now) {
			taken++
		}
	}
	return taken
}

func TestNewSessionsAreLimitedPerSourceNetworkAndTotal(t *testing.T) {
	const rate = 1000 // the burst is four times that
	for _, c := range []struct {
		name    string
		address func(i int) string
		want    int
	}{
		{"one address", func(int) string { return "192.0.2.1" }, rate},
		{"a /24", func(i int) string { return fmt.Sprintf("192.0.2.%d", i%256) }, 2 * rate},
		{"all", func(i int) string { return fmt.Sprintf("10.1.%d.1", i%256) }, 4 * rate},
		{"a /64", func(i int) string { return fmt.Sprintf("2001:db8:1:2::%x", i) }, rate},
		{"a /48", func(i int) string { return fmt.Sprintf("2001:db8:1:%x::1", i) }, 2 * rate},
		{"all of IPv6", func(i int) string { return fmt.Sprintf("2001:db8:%x::1", i) }, 4 * rate},
	} {
		n := newNewSessionLimit(2*rate, 2)
		if got := begun(n, 0, 10_000, c.address); got != c.want {
			t.Errorf("%s: opened %d of 10,000 at once, want %d", c.name, got, c.want)
		}
		if got, want := begun(n, time.Second, 10_000, c.address), c.want/newSessionBurst; got != want {
			t.Errorf("%s: opened %d a second later, want %d", c.name, got, want)
		}
	}
	if got := begun(newNewSessionLimit(-1, 1), 0, 10_000, func(int) string { return "192.0.2.1" }); got != 10_000 {
		t.Errorf("opened %d of 10,000 without a limit", got)
	}
}

// floodLab is a reflector that has a known peer and has reached its limit of new sessions.
func floodLab(t *testing.T, change func(*Options)) (l *lab, known *poller) {
	t.Helper()
	l = newLab(t, func(o *Options) {
		o.NewSessions = 100
		if change != nil {
			change(o)
		}
	})
	known = l.poller("192.0.2.1:5000", 1)
	known.poll(0)
	known.poll(1)
	for i := range 1000 {
		l.poller(fmt.Sprintf("10.%d.0.1:5000", i%250), uint32(i+2)).poll(0)
	}
	if n := l.s.table.len(); n != 1+4*100-1 {
		t.Fatalf("%d sessions, want 400 in all", n)
	}
	return l, known
}

func TestFloodOfUnknownPeersDoesNotAffectKnownSessions(t *testing.T) {
	l, known := floodLab(t, nil)
	sources := len(l.s.table.sources.byKey)
	unknownPeer := l.poller("198.51.100.1:5000", 9)
	if r := unknownPeer.poll(0).result; r != NewSessionLimited {
		t.Fatalf("an unknown peer: got %v, want new_session_limited", r)
	}
	if n := len(l.s.table.sources.byKey); n != sources {
		t.Errorf("%d sources, want %d: a refused one is not stored", n, sources)
	}
	if rep := known.poll(2); rep.result != Answered || rep.receipt.Received != 3 {
		t.Errorf("the known peer: got %v, %d received", rep.result, rep.receipt.Received)
	}
	known.peer = netip.MustParseAddrPort("203.0.113.77:6000") // a changed NAT binding
	if rep := known.poll(3); rep.result != Answered || rep.receipt.Received != 4 {
		t.Errorf("the known peer at another address: got %v, %d received", rep.result, rep.receipt.Received)
	}
	l.now += time.Second
	if r := unknownPeer.poll(1).result; r != Answered {
		t.Errorf("the unknown peer, a second later: got %v", r)
	}
}

func TestSessionWithoutReceiptsContinuesWithItsFirstReceipt(t *testing.T) {
	l := newLab(t, func(o *Options) { o.NewSessions = 1 })
	k := l.poller("192.0.2.1:5000", 1)
	k.send(k.base(0))
	for l.s.unknownPeers.take(netip.MustParseAddr("192.0.2.1"), l.now) {
	}
	if rep := k.statsQuery(1, false); rep.result != AnsweredStatsQuery || rep.receipt.Received != 1 {
		t.Errorf("got %v, %d received", rep.result, rep.receipt.Received)
	}
}

func TestFloodOfUnknownPeersDoesNotRefuseAuthenticatedPeers(t *testing.T) {
	key := newKey(t, "k")
	l, _ := floodLab(t, func(o *Options) { o.Keys = []*stampfmt.Key{key} })
	k := l.poller("198.51.100.1:5000", 9)
	k.key = key
	if r := k.poll(0).result; r != Answered {
		t.Errorf("a new authenticated peer: got %v", r)
	}
}

// An attacker can replay an authenticated packet only after capturing it: unknown peers evict only their own kind.
func TestUnknownPeersDoNotEvictAuthenticatedSessions(t *testing.T) {
	key := newKey(t, "k")
	l := newLab(t, func(o *Options) { o.Keys, o.MaxSessions, o.NewSessions = []*stampfmt.Key{key}, 100, -1 })
	var signers []*poller
	for i := range 50 {
		k := l.poller(fmt.Sprintf("192.0.2.%d:5000", i), 1)
		k.key = key
		k.poll(0)
		signers = append(signers, k)
	}
	for i := range 1000 {
		l.poller(fmt.Sprintf("10.0.%d.%d:5000", i/250, i%250), 1).poll(0)
	}
	for i, k := range signers {
		if n := k.poll(1).receipt.Received; n != 2 {
			t.Fatalf("authenticated peer %d: %d received, want 2", i, n)
		}
	}
	l.s.table.check(t)
}

func TestRefusedPacketsOfASessionAreReportedAsHostDrops(t *testing.T) {
	l := newLab(t, func(o *Options) { o.RatePackets, o.RateBurst = 10, 5 })
	k := l.poller("192.0.2.1:5000", 1)
	answered := uint32(0)
	for seq := range uint32(20) {
		if k.send(k.request(seq, requestHost)).result == Answered {
			answered++
		}
	}
	l.now += time.Second
	if r := k.send(k.request(20, requestHost)).receipt; !r.Host || r.SocketDrops != 20-answered || r.Received != answered+1 || answered == 20 {
		t.Errorf("replies to %d of 20 requests: %+v", answered, r)
	}
}

func TestSpoofedPacketsDoNotUseUpTheRateOfAKnownPeer(t *testing.T) {
	l := newLab(t, func(o *Options) { o.RatePackets, o.RateBurst = 10, 5 })
	known, spoofer := l.poller("192.0.2.1:5000", 1), l.poller("192.0.2.1:6000", 2)
	known.poll(0)
	known.poll(1)
	for i := range uint32(50) {
		l.now += 200 * time.Millisecond
		for range 20 {
			spoofer.epoch = 0 // which a spoofer never receives
			spoofer.poll(i)
		}
		if r := known.poll(2 + i); r.result != Answered {
			t.Fatalf("request %d: got %v", 2+i, r.result)
		}
	}
}

func TestPacketsRefusedBeforeASessionAreReportedUpToTheNumberSent(t *testing.T) {
	l, known := floodLab(t, nil)
	l.now += time.Second
	if r := l.poller("198.51.100.1:5000", 9); r.send(r.request(7, requestHost)).receipt.SocketDrops != 7 {
		t.Error("the first 7 packets were refused, the Receipt does not report it")
	}
	if r := known.send(known.request(2, requestHost)).receipt; r.SocketDrops != 0 {
		t.Errorf("the known peer, without refused packets: %+v", r)
	}
	for range 3 {
		l.now += 2 * dropsBefore
		l.s.refusals.update(l.s.refused, l.now)
	}
	if r := l.poller("198.51.100.2:5000", 9); r.send(r.request(7, requestHost)).receipt.SocketDrops != 0 {
		t.Error("the Receipt reports packets refused long ago")
	}
}
