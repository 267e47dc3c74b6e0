package loadserver

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/tests/testseed"
)

// limiter is a gate with connections that have no socket.
type limiter struct {
	t *testing.T
	*gate
	pushed int
}

func newLimiter(t *testing.T, most int) *limiter {
	d := &limiter{t: t}
	d.gate = newGate(&Options{MaxConnections: most}, func(loadcontrol.Reason) { d.pushed++ })
	return d
}

// comes adds a connection from an address.
func (d *limiter) comes(from string) (c *gatedConn, in bool) {
	c = &gatedConn{TCPConn: &net.TCPConn{}, gate: d.gate} // not open: closing it does nothing
	return c, d.enter(c, netip.MustParseAddr(from))
}

func (d *limiter) in(from string) *gatedConn {
	d.t.Helper()
	c, in := d.comes(from)
	if !in {
		d.t.Fatalf("the connection from %s is rejected", from)
	}
	return c
}

func (d *limiter) wantGone(gone ...*gatedConn) {
	d.t.Helper()
	for i, c := range gone {
		if !c.removed {
			d.t.Errorf("connection %d was not replaced", i)
		}
	}
	if d.pushed != len(gone) {
		d.t.Errorf("%d connections were replaced, want %d", d.pushed, len(gone))
	}
}

func TestNewConnectionReplacesTheOldestUnknownPeerOfTheBusiestSource(t *testing.T) {
	d := newLimiter(t, 8)
	known := d.in("192.0.2.1")
	known.authenticated()
	lonely := d.in("192.0.2.2") // the oldest unknown peer, but the only one of its source
	session := d.in("192.0.2.3")
	first := d.in("192.0.2.3")
	d.in("192.0.2.4")
	second := d.in("192.0.2.4")
	session.authenticated() // leaves one unknown peer at .3, so .4 is the busiest source
	d.in("192.0.2.5")
	d.in("192.0.2.6")
	busiest := d.unknownPeers[2] // .4's first
	d.in("192.0.2.7")
	d.wantGone(busiest)
	d.in("192.0.2.8") // each source has one now: the oldest is replaced
	d.wantGone(busiest, lonely)
	if known.removed || session.removed || first.removed || second.removed || d.connections() != 8 {
		t.Errorf("%d connections are open", d.connections())
	}
}

func TestSourceAtItsShareReplacesItsOwnConnections(t *testing.T) {
	d := newLimiter(t, 8)
	for _, c := range []struct{ name, host, other string }{
		{"an IPv4 address", "192.0.2.1", "192.0.2.1"},
		{"a /64", "2001:db8:1:1::1", "2001:db8:1:1:ffff::2"},
	} {
		first := d.in(c.host)
		second := d.in(c.other)
		third := d.in(c.host)
		d.wantGone(first)
		second.authenticated()
		third.authenticated()
		fourth := d.in(c.other)
		d.in(c.host)
		d.in(c.host)
		d.wantGone(first, fourth)
		if second.removed || third.removed {
			t.Errorf("%s replaced an authenticated connection", c.name)
		}
		d = newLimiter(t, 8)
	}
	first := d.in("2001:db8:2:1::1")
	for _, from := range []string{"2001:db8:2:2::1", "2001:db8:2:3::1", "2001:db8:2:4::1", "2001:db8:2:5::1"} {
		d.in(from)
	}
	d.wantGone(first) // the limit of a /48 is half
	if d.connections() != 4 {
		t.Errorf("%d connections of one site are open", d.connections())
	}
}

func TestManyNetworksOfOneSiteAreOneSource(t *testing.T) {
	d := newLimiter(t, 8)
	lonely := d.in("2001:db8:1:1::1")
	d.in("2001:db8:1:2::1")
	other := d.in("2001:db8:2:1::1")
	for i := range 200 {
		from := netip.MustParseAddr("2001:db8:3::").As16()
		from[6], from[7] = byte(i), byte(7*i)
		d.in(netip.AddrFrom16(from).String())
	}
	if lonely.removed || other.removed || d.connections() != 7 {
		t.Errorf("a site of many networks replaced others, or %d are open", d.connections())
	}
}

func TestFullGateOfSessionsRejectsNewConnections(t *testing.T) {
	d := newLimiter(t, 2)
	d.in("192.0.2.1").authenticated()
	last := d.in("192.0.2.2")
	last.authenticated()
	if _, in := d.comes("192.0.2.3"); in {
		t.Error("a session was replaced")
	}
	_ = last.Close() // it was not admitted
	d.in("192.0.2.3")
	if d.connections() != 2 || len(d.sources) != 2 {
		t.Errorf("%d connections are open, of %d sources", d.connections(), len(d.sources))
	}
}

// TestGateCountsAreExact adds, authenticates and closes connections at random.
func TestGateCountsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	d := newLimiter(t, 16)
	var all []*gatedConn
	for range 20_000 {
		switch n := rng.IntN(4); {
		case n < 2:
			from := netip.AddrFrom4([4]byte{192, 0, 2, byte(rng.IntN(6))})
			if rng.IntN(2) == 0 {
				from = netip.AddrFrom16([16]byte{0x20, 1, 5: byte(rng.IntN(2)), 7: byte(rng.IntN(3)), 15: byte(rng.IntN(3))})
			}
			if c, in := d.comes(from.String()); in {
				all = append(all, c)
			}
		case len(all) > 0 && n == 2:
			all[rng.IntN(len(all))].authenticated()
		case len(all) > 0:
			i := rng.IntN(len(all))
			_ = all[i].Close()
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
		}
		open := 0
		for _, c := range all {
			if !c.removed {
				open++
			}
		}
		if d.connections() != open || open > 16 || len(d.unknownPeers) > open || len(d.sources) > 2*open {
			t.Fatalf("%d counted, %d unknown peers, %d sources; %d are open", d.connections(), len(d.unknownPeers), len(d.sources), open)
		}
	}
	for _, c := range all {
		_ = c.Close()
	}
	if d.connections() != 0 || len(d.unknownPeers) != 0 || len(d.sources) != 0 {
		t.Errorf("%d connections, %d unknown peers, %d sources are left", d.connections(), len(d.unknownPeers), len(d.sources))
	}
}
