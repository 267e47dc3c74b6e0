package stamp

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/target"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
	"oneway.example/tests/namespace"
)

// TestRouterOfAPathIsAHop measures over a router, to a reflector that reports the TTL of received packets.
func TestRouterOfAPathIsAHop(t *testing.T) {
	local, router, remote := namespace.New(t), namespace.New(t), namespace.New(t)
	namespace.Veth(t, local, "up", router, "one", 0)
	namespace.Veth(t, router, "two", remote, "down", 0)
	namespace.Up(t, local, "up", "10.79.1.1/24")
	namespace.Up(t, router, "one", "10.79.1.2/24")
	namespace.Up(t, router, "two", "10.79.2.2/24")
	namespace.Up(t, remote, "down", "10.79.2.1/24")
	namespace.Do(t, router, func() {
		namespace.Check(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
	})
	gateway(t, local, net.IPv4(10, 79, 1, 2))
	gateway(t, remote, net.IPv4(10, 79, 2, 2))
	peer := netip.MustParseAddrPort("10.79.2.1:862")
	namespace.Do(t, remote, func() { tellTTL(t, peer) })
	b, sink := newTestbed(t, reflector.Options{}), &metrictest.Sink{}
	b.env.Sink = sink
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: peer.String()}, quick())
	namespace.Check(t, err)
	// The socket is of the namespace in which the session is opened.
	series := newSeries(sink, "p", "stamp")
	var m target.Measurement
	namespace.Do(t, local, func() { m, err = p.open(t.Context(), peer, series) })
	namespace.Check(t, err)
	for _, direction := range []string{"forward", "reverse"} {
		await.That(t, "one hop "+direction, func() bool {
			passed, known := sink.Value(metric.Hops, "p", "stamp", direction)
			return known && passed == 1
		})
		if changes, known := sink.Value(metric.HopChanges, "p", "stamp", direction); !known || changes != 0 {
			t.Errorf("%s: %v changes, known %v; want 0", direction, changes, known)
		}
	}
	m.End()
	series.scope.Close()
}

func gateway(t *testing.T, ns netns.NsHandle, by net.IP) {
	t.Helper()
	namespace.Do(t, ns, func() { namespace.Check(t, netlink.RouteAdd(&netlink.Route{Gw: by})) })
}

// tellTTL replies like a reflector that supports none of our TLVs, until the test ends.
func tellTTL(t *testing.T, at netip.AddrPort) {
	t.Helper()
	conn, err := tstamp.Open(at, tstamp.Options{})
	namespace.Check(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for batch := tstamp.NewBatch(16, maxSize); conn.Receive(batch) == nil; {
			for i := range batch.In {
				in := &batch.In[i]
				pendingReply := replyTo(in.Payload, 0)
				pendingReply[senderTTLAt] = in.TTL
				_, _ = conn.Send([]tstamp.Out{{Payload: pendingReply, Peer: in.Peer, TTL: 128}})
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
}

// senderTTLAt is the offset of the request's TTL in an unauthenticated reply (RFC 8762 figure 5).
const senderTTLAt = 40
