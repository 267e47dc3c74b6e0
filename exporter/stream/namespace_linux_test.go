package stream

import (
	"encoding/binary"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// link is two network namespaces with a veth pair between them.
type link struct {
	near, far         netns.NsHandle
	nearAddr, farAddr netip.Addr
}

// newLink makes a link for the length of a test. It needs root.
func newLink(tb testing.TB) link {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("SKIPPED, NOT PASSED: network namespaces need root")
	}
	l := link{nearAddr: netip.MustParseAddr("10.77.0.1"), farAddr: netip.MustParseAddr("10.77.0.2")}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	check(tb, err)
	defer home.Close()
	defer func() { check(tb, netns.Set(home)) }()
	l.far, err = netns.New()
	check(tb, err)
	l.near, err = netns.New()
	check(tb, err)
	tb.Cleanup(func() { check(tb, l.far.Close()); check(tb, l.near.Close()) })

	pair := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "far"}
	pair.Name = "near"
	check(tb, netlink.LinkAdd(pair))
	peer, err := netlink.LinkByName("far")
	check(tb, err)
	check(tb, netlink.LinkSetNsFd(peer, int(l.far)))
	up(tb, "near", "10.77.0.1/24", "fd77::1/64")
	check(tb, netns.Set(l.far))
	up(tb, "far", "10.77.0.2/24", "fd77::2/64")
	return l
}

func up(tb testing.TB, name string, addresses ...string) {
	tb.Helper()
	for _, n := range []string{name, "lo"} {
		ifi, err := netlink.LinkByName(n)
		check(tb, err)
		check(tb, netlink.LinkSetUp(ifi))
	}
	ifi, err := netlink.LinkByName(name)
	check(tb, err)
	for _, a := range addresses {
		addr, err := netlink.ParseAddr(a)
		check(tb, err)
		addr.Flags = 0x02 // IFA_F_NODAD: usable at once
		check(tb, netlink.AddrAdd(ifi, addr))
	}
}

// open makes an Endpoint inside a namespace, which runs until the test ends.
func (l link) open(tb testing.TB, ns netns.NsHandle, local netip.Addr) *Endpoint {
	tb.Helper()
	return l.openWith(tb, ns, Options{Local: netip.AddrPortFrom(local, 0)})
}

func (l link) openWith(tb testing.TB, ns netns.NsHandle, o Options) *Endpoint {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	check(tb, err)
	defer home.Close()
	check(tb, netns.Set(ns))
	defer func() { check(tb, netns.Set(home)) }()
	e, err := Open(o)
	check(tb, err)
	runs(tb, e)
	return e
}

// shape has the near end send no more than so many bits a second.
func (l link) shape(tb testing.TB, bits uint64, queueBytes uint32) {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	check(tb, err)
	defer home.Close()
	check(tb, netns.Set(l.near))
	defer func() { check(tb, netns.Set(home)) }()
	ifi, err := netlink.LinkByName("near")
	check(tb, err)
	check(tb, netlink.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifi.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       bits / 8, Buffer: netlink.Xmittime(bits/8, 2000), Limit: queueBytes,
	}))
}

// sendDamaged sends a packet with a wrong UDP checksum from the near end.
func (l link) sendDamaged(tb testing.TB, from, to netip.AddrPort, payload []byte) {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	check(tb, err)
	defer home.Close()
	check(tb, netns.Set(l.near))
	defer func() { check(tb, netns.Set(home)) }()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	check(tb, err)
	defer unix.Close(fd)
	b := binary.BigEndian.AppendUint16(nil, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	b = binary.BigEndian.AppendUint16(b, 0xbad) // right by chance once in 65,536 payloads, and this one is fixed
	check(tb, unix.Sendto(fd, append(b, payload...), 0, &unix.SockaddrInet4{Addr: to.Addr().As4()}))
}

// ends are two endpoints at the ends of the link, which know each other's addresses.
func (l link) ends(tb testing.TB) ends {
	tb.Helper()
	e := joined(l.open(tb, l.near, l.nearAddr), l.open(tb, l.far, l.farAddr))
	if _, err := e.here.Hello(tb.Context(), e.server.LocalAddr()); err != nil { // finds the neighbour too
		tb.Fatal(err)
	}
	return e
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
