package stream

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"oneway.example/tests/namespace"
)

// narrow returns the endpoints of two hosts with a router between them, whose second link has an MTU of 1400 bytes.
func narrow(t *testing.T, v6 bool) (sender, receiver *Endpoint) {
	t.Helper()
	client, router, server := namespace.New(t), namespace.New(t), namespace.New(t)
	namespace.Veth(t, client, "wide", router, "in", 1500)
	namespace.Veth(t, router, "out", server, "narrow", 1400)
	near, via, beyond, far, all := "10.78.1.1/24", "10.78.1.2/24", "10.78.2.2/24", "10.78.2.1/24", "0.0.0.0/0"
	if v6 {
		near, via, beyond, far, all = "fd00:1::1/64", "fd00:1::2/64", "fd00:2::2/64", "fd00:2::1/64", "::/0"
	}
	namespace.Up(t, client, "wide", near)
	namespace.Up(t, router, "in", via)
	namespace.Up(t, router, "out", beyond)
	namespace.Up(t, server, "narrow", far)
	_, anywhere, err := net.ParseCIDR(all)
	namespace.Check(t, err)
	namespace.Do(t, router, func() {
		for _, file := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
			namespace.Check(t, os.WriteFile("/proc/sys/net/"+file, []byte("1"), 0))
		}
	})
	namespace.Do(t, client, func() {
		namespace.Check(t, netlink.RouteAdd(&netlink.Route{Dst: anywhere, Gw: netip.MustParsePrefix(via).Addr().AsSlice()}))
		sender = running(t, Options{Local: netip.AddrPortFrom(netip.MustParsePrefix(near).Addr(), 0)})
	})
	namespace.Do(t, server, func() {
		namespace.Check(t, netlink.RouteAdd(&netlink.Route{Dst: anywhere, Gw: netip.MustParsePrefix(beyond).Addr().AsSlice()}))
		receiver = running(t, Options{Local: netip.AddrPortFrom(netip.MustParsePrefix(far).Addr(), 0)})
	})
	return sender, receiver
}

// A stream of packets that are all larger than the path's MTU ends at the router's message; one with smaller packets, as a
// search for the MTU sends, goes on. Both know the MTU.
func TestStreamKnowsTheMTUThatARouterReports(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		sender, receiver := narrow(t, v6)
		s := sender.Join(testSession)
		large := Segment{PayloadBytes: 1400, Interval: time.Millisecond, Burst: 1, Bursts: 5_000}
		few := large
		few.Bursts = 50
		small := Segment{PayloadBytes: 500, Interval: time.Millisecond, Burst: 1, Bursts: 50}
		for what, c := range map[string]struct {
			segments []Segment
			mtu      int
			ends     bool
		}{
			"all larger": {[]Segment{large}, 1400, true},
			"both":       {[]Segment{few, small}, 1400, false},
			"smaller":    {[]Segment{small}, 0, false},
		} {
			p := Plan{Segments: c.segments}
			sent, err := s.Send(t.Context(), 1, receiver.LocalAddr(), p, SendOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if sent.PathMTU != c.mtu || (len(sent.Packets) < p.Packets()) != c.ends {
				t.Errorf("IPv6 %v, %s: the MTU is %d, %d of %d packets; want %d, an early end: %v", v6, what, sent.PathMTU, len(sent.Packets), p.Packets(), c.mtu, c.ends)
			}
		}
	}
}
