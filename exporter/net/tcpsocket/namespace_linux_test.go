package tcpsocket

import (
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"oneway.example/tests/await"
	"oneway.example/tests/namespace"
)

// A router with a shaper of 20 Mb/s and a short queue drops packets. Its counters are the truth of what
// this end sent.
func TestTotalsAreThoseOfTheShapersCounters(t *testing.T) {
	const (
		rate  = 20e6 / 8
		bytes = 2900 * 1448 // full segments only, so that each dropped one has the same size
		frame = 14          // the shaper counts the Ethernet header
		other = 4           // packets of address resolution at most
	)
	local, router, remote := route(t, rate)
	config := Options{}.ListenConfig()
	type end struct {
		info Info
		took time.Duration
		err  error
	}
	var near end
	var conn *Conn
	received := make(chan end, 1)
	namespace.Do(t, remote, func() {
		l, err := config.Listen(t.Context(), "tcp", "10.77.2.2:0")
		namespace.Check(t, err)
		to := netip.MustParseAddrPort(l.Addr().String())
		go func() {
			defer l.Close()
			c, err := l.Accept()
			if err != nil {
				received <- end{err: err}
				return
			}
			defer c.Close()
			begin := time.Now()
			n, err := io.Copy(io.Discard, c)
			received <- end{info: Info{Received: n}, took: time.Since(begin), err: err}
		}()
		namespace.Do(t, local, func() {
			conn, _, err = Options{CongestionControl: "cubic"}.Dial(t.Context(), netip.Addr{}, to)
			namespace.Check(t, err)
		})
	})
	defer conn.Close()
	if _, err := conn.Write(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	await.That(t, "all is acknowledged", func() bool {
		near.info = info(t, conn)
		return near.info.Unacked == 0 && near.info.NotSent == 0
	})
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	far := <-received
	if far.err != nil || far.info.Received != bytes {
		t.Fatalf("received %d, %v", far.info.Received, far.err)
	}
	last := info(t, conn)
	q := counters(t, router)
	t.Logf("sent %d bytes in %d segments, %d of them again; the shaper passed %d packets with %d bytes and dropped %d; %.0f kB/s", last.Sent, last.SegmentsOut,
		last.RetransmittedSegments, q.Basic.Packets, q.Basic.Bytes, q.Queue.Drops, bytes/far.took.Seconds()/1e3)
	if got, want := last.SegmentsOut, int64(q.Basic.Packets+q.Queue.Drops); got > want || got < want-other {
		t.Errorf("%d segments sent; the shaper has counted %d", got, want)
	}
	if last.RetransmittedSegments == 0 || last.RetransmittedSegments < int64(q.Queue.Drops) {
		t.Errorf("%d segments sent again; the shaper dropped %d", last.RetransmittedSegments, q.Queue.Drops)
	}
	if last.Sent-last.Retransmitted != bytes {
		t.Errorf("sent %d - %d bytes, want %d", last.Sent, last.Retransmitted, bytes)
	}
	// All dropped packets are full; SYN and SACK blocks are what SentIPBytes does not know.
	full := last.MSS + last.HeaderBytes(false)
	passed := int64(q.Basic.Bytes) - frame*int64(q.Basic.Packets)
	if got, want := last.SentIPBytes(false), passed+full*int64(q.Queue.Drops); got < want-100*other || got > want+100 {
		t.Errorf("sent %d IP bytes; the shaper has counted %d", got, want)
	}
	if last.Busy < time.Second || last.RTT < time.Millisecond || last.RwndLimited > last.Busy {
		t.Errorf("busy %v, RTT %v", last.Busy, last.RTT)
	}
}

// ECN cannot be chosen for a socket; the state tells whether both hosts use it.
func TestNegotiatedECNShowsInTheState(t *testing.T) {
	for _, ecn := range []string{"0", "1"} {
		p := namespace.NewPair(t)
		config := Options{}.ListenConfig()
		var conn *Conn
		namespace.Do(t, p.Remote, func() {
			l, err := config.Listen(t.Context(), "tcp", "10.77.0.2:0")
			namespace.Check(t, err)
			defer l.Close()
			namespace.Do(t, p.Local, func() {
				namespace.Check(t, os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte(ecn), 0))
				conn, _, err = Options{CongestionControl: "cubic"}.Dial(t.Context(), netip.Addr{}, netip.MustParseAddrPort(l.Addr().String()))
				namespace.Check(t, err)
			})
		})
		if i := info(t, conn); (i.Negotiated&ECN != 0) != (ecn == "1") {
			t.Errorf("tcp_ecn %s: negotiated %b", ecn, i.Negotiated)
		}
		_ = conn.Close() // the test is over
	}
}

// route makes two namespaces with a router between them, whose link to the second is shaped. Segmentation
// offload is off at the first, so that the shaper counts packets.
func route(t *testing.T, bytesPerSecond uint64) (local, router, remote netns.NsHandle) {
	t.Helper()
	local, router, remote = namespace.New(t), namespace.New(t), namespace.New(t)
	// The shaper would also count, and drop, the kernel's neighbor and multicast messages of IPv6.
	namespace.Do(t, router, func() {
		namespace.Check(t, os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0))
	})
	namespace.Veth(t, local, "near", router, "left", 0)
	namespace.Veth(t, router, "right", remote, "far", 0)
	namespace.Up(t, local, "near", "10.77.1.1/24")
	namespace.Up(t, router, "left", "10.77.1.2/24")
	namespace.Up(t, router, "right", "10.77.2.1/24")
	namespace.Up(t, remote, "far", "10.77.2.2/24")
	via := func(gateway string) {
		namespace.Check(t, netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(gateway)}))
	}
	namespace.Do(t, local, func() {
		via("10.77.1.2")
		near, err := netlink.LinkByName("near")
		namespace.Check(t, err)
		namespace.Check(t, netlink.LinkSetGSOMaxSegs(near, 1))
	})
	namespace.Do(t, remote, func() { via("10.77.2.1") })
	namespace.Do(t, router, func() {
		namespace.Check(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
		right, err := netlink.LinkByName("right")
		namespace.Check(t, err)
		namespace.Check(t, netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: right.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       bytesPerSecond, Buffer: netlink.Xmittime(bytesPerSecond, 5000), Limit: 50_000,
		}))
	})
	return local, router, remote
}

func counters(t *testing.T, router netns.NsHandle) (s *netlink.QdiscStatistics) {
	t.Helper()
	namespace.Do(t, router, func() {
		right, err := netlink.LinkByName("right")
		namespace.Check(t, err)
		all, err := netlink.QdiscList(right)
		namespace.Check(t, err)
		for _, q := range all {
			if q.Type() == "tbf" {
				s = q.Attrs().Statistics
			}
		}
	})
	if s == nil || s.Basic == nil || s.Queue == nil {
		t.Fatal("the shaper has no counters")
	}
	return s
}
