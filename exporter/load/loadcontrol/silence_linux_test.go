package loadcontrol

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"oneway.example/tests/namespace"
)

func TestRouteThatKeepsPacketsOnThisHostIsNamed(t *testing.T) {
	host, router := namespace.New(t), namespace.New(t)
	namespace.Veth(t, host, "out", router, "in", 1500)
	namespace.Up(t, host, "out", "192.0.2.1/24", "fe80::a/64")
	namespace.Up(t, router, "in", "192.0.2.2/24")
	at := netip.MustParseAddrPort("198.51.100.2:8620")
	c := &Client{Conn: &Conn{local: netip.MustParseAddrPort("192.0.2.1:40000"), remote: at}}
	to := &net.IPNet{IP: at.Addr().AsSlice(), Mask: net.CIDRMask(32, 32)}
	namespace.Do(t, host, func() {
		check := func(what, want string) {
			for _, err := range []error{c.Silence(c.remote, SilentUDP, 10*time.Second, 0), c.Ended(errors.New("closed"))} {
				if text := err.Error(); want == "" && strings.Contains(text, "this host") || !strings.Contains(text, want) {
					t.Errorf("%s: %q does not have %q", what, text, want)
				}
			}
		}
		check("no route", "this host does not send to it: its route is missing, or prohibits or drops its packets (network is unreachable): `ip route get 198.51.100.2` shows it")
		for kind, want := range map[int]string{unix.RTN_PROHIBIT: "permission denied", unix.RTN_BLACKHOLE: "invalid argument", unix.RTN_UNREACHABLE: "no route to host"} {
			r := &netlink.Route{Dst: to, Type: kind}
			namespace.Check(t, netlink.RouteAdd(r))
			check("route", "("+want+")")
			namespace.Check(t, netlink.RouteDel(r))
		}
		namespace.Check(t, netlink.RouteAdd(&netlink.Route{Dst: to, Gw: netip.MustParseAddr("192.0.2.2").AsSlice()}))
		check("a route", "")

		c.local, c.remote = netip.MustParseAddrPort("[fe80::a%out]:40000"), netip.MustParseAddrPort("[fe80::b%out]:8620")
		all, err := netlink.RouteList(nil, netlink.FAMILY_V6)
		namespace.Check(t, err)
		for _, r := range all {
			if r.Dst != nil && r.Dst.IP.IsLinkLocalUnicast() {
				namespace.Check(t, netlink.RouteDel(&r))
			}
		}
		check("no route to a link-local address", "`ip route get fe80::b dev out` shows it")
	})
}
