package stream

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"oneway.example/tests/namespace"
)

// link is two network namespaces with a veth pair between them.
type link struct{ namespace.Pair }

// newLink makes a link until the end of the test. It requires root.
func newLink(tb testing.TB) link { return link{namespace.NewPair(tb)} }

// open opens an Endpoint inside a namespace; it runs until the end of the test.
func (l link) open(tb testing.TB, ns netns.NsHandle, local netip.Addr) *Endpoint {
	tb.Helper()
	return l.openWith(tb, ns, Options{Local: netip.AddrPortFrom(local, 0)})
}

func (l link) openWith(tb testing.TB, ns netns.NsHandle, o Options) (e *Endpoint) {
	tb.Helper()
	namespace.Do(tb, ns, func() {
		var err error
		e, err = Open(o)
		check(tb, err)
		runs(tb, e)
	})
	return e
}

// shape limits the rate of the local end in bits per second.
func (l link) shape(tb testing.TB, bits uint64, queueBytes uint32) {
	tb.Helper()
	namespace.Do(tb, l.Local, func() {
		ifi, err := netlink.LinkByName("near")
		check(tb, err)
		check(tb, netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifi.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       bits / 8, Buffer: netlink.Xmittime(bits/8, 2000), Limit: queueBytes,
		}))
	})
}

// sendDamaged sends a packet with a wrong UDP checksum from the local end.
func (l link) sendDamaged(tb testing.TB, from, to netip.AddrPort, payload []byte) {
	tb.Helper()
	namespace.Do(tb, l.Local, func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
		check(tb, err)
		defer unix.Close(fd)
		b := binary.BigEndian.AppendUint16(nil, from.Port())
		b = binary.BigEndian.AppendUint16(b, to.Port())
		b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
		b = binary.BigEndian.AppendUint16(b, 0xbad) // wrong for this payload
		check(tb, unix.Sendto(fd, append(b, payload...), 0, &unix.SockaddrInet4{Addr: to.Addr().As4()}))
	})
}

// ends returns two endpoints at the ends of the link that have each other's addresses.
func (l link) ends(tb testing.TB) ends {
	tb.Helper()
	e := joined(l.open(tb, l.Local, l.LocalAddr), l.open(tb, l.Remote, l.RemoteAddr))
	if _, err := e.here.Hello(tb.Context(), e.server.LocalAddr()); err != nil { // also resolves the neighbor
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
