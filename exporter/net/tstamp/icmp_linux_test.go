package tstamp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"oneway.example/tests/namespace"
)

// routed is a link whose remote end is a router to a third host.
type routed struct {
	link
	host netns.NsHandle
}

// The third host's addresses, and its link's MTU.
const (
	hostV4, hostV6 = "10.78.0.2", "fd78::2"
	narrow         = 1300
)

func newRouted(tb testing.TB) routed {
	tb.Helper()
	r := routed{link: newLink(tb)}
	r.host = namespace.New(tb)
	namespace.Veth(tb, r.host, "host", r.Remote, "router", narrow)
	namespace.Up(tb, r.host, "host", hostV4+"/24", hostV6+"/64")
	namespace.Do(tb, r.host, func() { route(tb, "10.78.0.1", "fd78::1") })
	namespace.Up(tb, r.Remote, "router", "10.78.0.1/24", "fd78::1/64")
	namespace.Do(tb, r.Remote, func() {
		for _, name := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
			check(tb, os.WriteFile("/proc/sys/net/"+name, []byte("1"), 0))
		}
	})
	namespace.Do(tb, r.Local, func() { route(tb, "10.77.0.2", "fd77::2") })
	return r
}

// route sets default routes to the gateways.
func route(tb testing.TB, gateways ...string) {
	tb.Helper()
	for _, g := range gateways {
		check(tb, netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(g)}))
	}
}

// errorFor sends out and returns the ICMP error that it causes.
func errorFor(t *testing.T, c *Conn, m SendOptions, out Out) ICMPError {
	t.Helper()
	_, err := c.SendAs(m, []Out{out})
	check(t, err)
	_, _, errs := collect(t, c, func(_ []In, _ []TxStamp, errs []ICMPError) bool { return len(errs) > 0 })
	return errs[0]
}

func TestICMPErrorsAreReportedWithAllFields(t *testing.T) {
	families(t, func(t *testing.T, v6 bool) {
		r := newRouted(t)
		local, router, host := r.LocalAddr, "10.77.0.2", hostV4
		port, expired, tooBig := [2]uint8{3, 3}, [2]uint8{11, 0}, [2]uint8{3, 4} // RFC 792
		if v6 {
			local, router, host = netip.MustParseAddr("fd77::1"), "fd77::2", hostV6
			port, expired, tooBig = [2]uint8{1, 4}, [2]uint8{3, 0}, [2]uint8{2, 0} // RFC 4443
		}
		c := r.open(t, r.Local, local, Options{})
		peer := netip.AddrPortFrom(netip.MustParseAddr(host), 9)
		whole := func(n int, head string) []byte { return append([]byte(head), make([]byte, n-len(head))...) }
		for _, x := range []struct {
			name        string
			sendOptions SendOptions
			out         Out
			offender    string
			kind        [2]uint8
			err         syscall.Errno
			mtu         int
		}{
			{"port unreachable", SendOptions{}, Out{Payload: []byte("short"), Cookie: 71}, host, port, unix.ECONNREFUSED, 0},
			{"TTL exceeded", SendOptions{}, Out{Payload: whole(100, "hop probe no. 1 and more"), TTL: 1, Cookie: 72}, router, expired, unix.EHOSTUNREACH, 0},
			{"packet too big", SendOptions{Fragmentation: NoFragmentation}, Out{Payload: whole(1400, "a long one"), Cookie: 73}, router, tooBig, unix.EMSGSIZE, narrow},
		} {
			x.out.Peer = peer
			got := errorFor(t, c, x.sendOptions, x.out)
			want := ICMPError{
				Peer: peer, Offender: netip.MustParseAddr(x.offender), Type: x.kind[0], Code: x.kind[1],
				Err: x.err, MTU: x.mtu, Cookie: x.out.Cookie, Matched: true,
			}
			if got != want {
				t.Errorf("%s: %+v, want %+v", x.name, got, want)
			}
		}
		// Of two packets with the same beginning, the quotation does not identify one.
		got := errorFor(t, c, SendOptions{}, Out{Payload: []byte("short"), Cookie: 74, Peer: peer})
		if got.Matched || got.Err != unix.ECONNREFUSED {
			t.Errorf("two packets with the same payload: %+v, want no match", got)
		}
		got = errorFor(t, c, SendOptions{Unstamped: true}, Out{Payload: []byte("without a timestamp"), Cookie: 75, Peer: peer})
		if got.Matched || got.Type != port[0] || got.Offender != peer.Addr() {
			t.Errorf("packet without timestamp: %+v, want no match", got)
		}
	})
}

func TestQuotationMatchesTheOnlyPacketWithItsBeginning(t *testing.T) {
	var r recent
	for i := range len(r.packets) + 10 {
		r.add(fmt.Appendf(nil, "packet %08d: and so on", i), uint64(i))
	}
	r.add([]byte("short"), 7)
	r.add([]byte("short"), 7) // sent again
	for _, c := range []struct {
		quote  string
		cookie uint64
		found  bool
	}{
		{"packet 00004000: an", 4000, true},
		{"packet 00004000:", 4000, true},
		{"packet 00004000", 0, false}, // truncated too early
		{"packet 00000003: and", 0, false},
		{"short", 7, true},
		{"", 0, false},
	} {
		if cookie, found := r.find([]byte(c.quote)); cookie != c.cookie || found != c.found {
			t.Errorf("find(%q) = %d, %v, want %d, %v", c.quote, cookie, found, c.cookie, c.found)
		}
	}
	if _, found := new(recent).find(bytes.Repeat([]byte{0}, 16)); found {
		t.Error("found a packet before any was sent")
	}
}

func TestSocketBoundToADeviceUsesOnlyThatDevice(t *testing.T) {
	l := newLink(t)
	remote := l.open(t, l.Remote, l.RemoteAddr, Options{})
	for _, device := range []string{"lo", "near"} { // the first has no route to the peer
		c := l.open(t, l.Local, netip.IPv4Unspecified(), Options{Device: device})
		_, err := c.Send([]Out{{Payload: []byte(device), Peer: remote.LocalAddr()}})
		check(t, err)
	}
	if got := arrivals(t, remote, 1); string(got[0]) != "near" {
		t.Errorf("received a packet of device %s", got[0])
	}
}

func TestSocketOfAVRFHasItsRoutes(t *testing.T) {
	l := newLink(t)
	remote := l.open(t, l.Remote, l.RemoteAddr, Options{})
	namespace.Do(t, l.Local, func() {
		vrf := &netlink.Vrf{LinkAttrs: netlink.NewLinkAttrs(), Table: 100}
		vrf.Name = "blue"
		if err := netlink.LinkAdd(vrf); errors.Is(err, unix.EOPNOTSUPP) {
			t.Skip("SKIPPED, NOT PASSED: this kernel has no VRFs (CONFIG_NET_VRF)")
		} else if err != nil {
			t.Fatal(err)
		}
		check(t, netlink.LinkSetUp(vrf))
		local, err := netlink.LinkByName("near")
		check(t, err)
		check(t, netlink.LinkSetMaster(local, vrf))
	})
	out := []Out{{Payload: []byte("x"), Peer: remote.LocalAddr()}}
	outside := l.open(t, l.Local, netip.IPv4Unspecified(), Options{})
	if _, err := outside.Send(out); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("send outside the VRF: %v, want ENETUNREACH", err)
	}
	inside := l.open(t, l.Local, netip.IPv4Unspecified(), Options{Device: "blue"})
	_, err := inside.Send(out)
	check(t, err)
	if got := arrivals(t, remote, 1); len(got) != 1 {
		t.Errorf("received %d packets, want 1", len(got))
	}
}

func TestUnknownDeviceIsAnErrorWithRemedy(t *testing.T) {
	for _, name := range []string{"no-such-link", "a-name-that-is-longer-than-any"} {
		_, err := Open(loopback(false), Options{Device: name})
		want := fmt.Sprintf("bind to device %q", name)
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) || !bytes.Contains([]byte(err.Error()), []byte("ip link")) {
			t.Errorf("device %s: got error %v, want its name and `ip link`", name, err)
		}
	}
}
