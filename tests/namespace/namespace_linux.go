// Package namespace makes network namespaces for tests, with links between them. Each
// lasts as long as its test. A test that needs a path of known rate and delay uses package lab.
package namespace

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"oneway.example/tests/await"
)

// New makes an empty namespace, and skips the test without root.
func New(tb testing.TB) (made netns.NsHandle) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("SKIPPED, NOT PASSED: network namespaces need root")
	}
	home, err := netns.Get()
	Check(tb, err)
	defer func() { _ = home.Close() }() // it is read only
	Do(tb, home, func() {               // netns.New enters what it makes
		made, err = netns.New()
		Check(tb, err)
		// A router resolves addresses from its link-local address, which would be tentative for
		// up to 2 s (RFC 4862, section 5.4).
		for _, name := range []string{"all", "default"} {
			Check(tb, os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/accept_dad", []byte("0"), 0))
		}
	})
	tb.Cleanup(func() { Check(tb, made.Close()) })
	return made
}

// Do runs f inside a namespace.
func Do(tb testing.TB, ns netns.NsHandle, f func()) {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	Check(tb, err)
	defer func() { _ = home.Close() }() // it is read only
	Check(tb, netns.Set(ns))
	defer func() { Check(tb, netns.Set(home)) }()
	f()
}

// Veth makes a link from an interface of one namespace to one of another, both of this MTU;
// zero: the kernel's own. Both ends are down.
func Veth(tb testing.TB, from netns.NsHandle, name string, to netns.NsHandle, remote string, mtu int) {
	tb.Helper()
	Do(tb, from, func() {
		pair := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: remote}
		pair.Name, pair.MTU = name, mtu
		Check(tb, netlink.LinkAdd(pair))
		peer, err := netlink.LinkByName(remote)
		Check(tb, err)
		if mtu > 0 {
			Check(tb, netlink.LinkSetMTU(peer, mtu))
		}
		Check(tb, netlink.LinkSetNsFd(peer, int(to)))
	})
}

// Up brings an interface of a namespace up, and its loopback, and gives the interface these
// addresses, which are usable at once.
func Up(tb testing.TB, ns netns.NsHandle, name string, addresses ...string) {
	tb.Helper()
	Do(tb, ns, func() {
		for _, n := range []string{"lo", name} {
			l, err := netlink.LinkByName(n)
			Check(tb, err)
			Check(tb, netlink.LinkSetUp(l))
		}
		l, err := netlink.LinkByName(name)
		Check(tb, err)
		for _, a := range addresses {
			addr, err := netlink.ParseAddr(a)
			Check(tb, err)
			addr.Flags = 0x02 // IFA_F_NODAD
			Check(tb, netlink.AddrAdd(l, addr))
		}
	})
}

// Pair is two namespaces with a link between them, whose interfaces are called local and remote.
type Pair struct {
	Local, Remote netns.NsHandle
	// LocalAddr and RemoteAddr are those of IPv4; of IPv6 they are fd77::1 and fd77::2.
	LocalAddr, RemoteAddr netip.Addr
}

// NewPair makes one.
func NewPair(tb testing.TB) Pair {
	tb.Helper()
	p := Pair{Local: New(tb), Remote: New(tb), LocalAddr: netip.MustParseAddr("10.77.0.1"), RemoteAddr: netip.MustParseAddr("10.77.0.2")}
	Veth(tb, p.Local, "near", p.Remote, "far", 0)
	Up(tb, p.Local, "near", "10.77.0.1/24", "fd77::1/64")
	Up(tb, p.Remote, "far", "10.77.0.2/24", "fd77::2/64")
	AwaitLocal(tb, p.Local, "fd77::1")
	AwaitLocal(tb, p.Remote, "fd77::2")
	return p
}

// AwaitLocal waits until packets to an IPv6 address of a namespace arrive: the kernel enters its local route after it has told that
// the address is in use, on a busy machine much later, and drops them until then. The interface's peer must be up.
func AwaitLocal(tb testing.TB, ns netns.NsHandle, address string) {
	tb.Helper()
	await.That(tb, "the local route to "+address, func() (local bool) {
		Do(tb, ns, func() {
			routes, err := netlink.RouteGet(net.ParseIP(address))
			local = err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL
		})
		return local
	})
}

// Check fails the test with an error.
func Check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
