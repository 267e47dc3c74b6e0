package stamp

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// TestReflectorThatTakesItsAddressBackIsMeasured: a virtual address moves to another host and back, while the reflector of the first
// one still has its session.
func TestReflectorThatTakesItsAddressBackIsMeasured(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, reflector.Options{})
	hosts := [2]net.Conn{dialed(t, b.peer), dialed(t, newTestbed(t, reflector.Options{}).peer)}
	var at atomic.Int32
	peer := fakePeer(t, func(q []byte) [][]byte { return passed(hosts[at.Load()], q) })
	o := DefaultOptions()
	o.Interval, o.LossTimeout = 20*time.Millisecond, time.Second
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: peer}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	report := func() (r Report) {
		if s := p.session.Load(); s != nil {
			r = reportOf(s.partial(s.estimator.window))
		}
		return r
	}
	value := func(n *uint64) uint64 {
		if n == nil {
			return 0
		}
		return *n
	}
	received := func(more uint64) func() bool {
		least := value(report().Reverse.Received) + more
		return func() bool { return value(report().Reverse.Received) >= least }
	}
	await.That(t, "the first host is measured", received(leastPackets))
	at.Store(1)
	await.That(t, "the second host is measured", received(50))
	at.Store(0)
	await.That(t, "the first host is measured again", received(50))
	if r := report(); value(r.Forward.Lost) > 0 || value(r.Reverse.Lost) > 0 || value(r.Reverse.Late) > 5 {
		t.Errorf("%d lost forward, %d reverse, %d late; want nothing lost, and few late", value(r.Forward.Lost), value(r.Reverse.Lost), value(r.Reverse.Late))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// leastPackets take longer than portAge.
const leastPackets = 600

// TestReflectorsBehindOneAddressLoseNothing: a load balancer distributes the packets of a path.
func TestReflectorsBehindOneAddressLoseNothing(t *testing.T) {
	for _, several := range []int{2, 3} {
		t.Run(fmt.Sprint(several), func(t *testing.T) {
			t.Parallel()
			b := newTestbed(t, reflector.Options{})
			hosts := []net.Conn{dialed(t, b.peer)}
			for range several - 1 {
				hosts = append(hosts, dialed(t, newTestbed(t, reflector.Options{}).peer))
			}
			at := 0
			r := b.to(fakePeer(t, func(q []byte) [][]byte {
				at++
				return passed(hosts[at%several], q)
			})).measure(t, quick(), 50)
			if r.Reflector != "stateless" || r.RoundTrip.Received != 50 || r.RoundTrip.Lost != 0 || r.Forward.Lost != nil || r.Reverse.Lost != nil ||
				!strings.Contains(r.Undirected, "more than one reflector") || len(r.Discarded) > 0 {
				t.Errorf("%s", asJSON(t, r))
			}
		})
	}
}

// dialed is a connection to a reflector.
func dialed(t *testing.T, peer string) net.Conn {
	t.Helper()
	conn, err := net.Dial("udp4", peer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// passed passes request q to a reflector, and returns its reply.
func passed(to net.Conn, q []byte) [][]byte {
	reply := make([]byte, 2000)
	_ = to.SetReadDeadline(time.Now().Add(time.Second)) // it cannot fail
	if _, err := to.Write(q); err != nil {
		return nil
	}
	n, err := to.Read(reply)
	if err != nil {
		return nil
	}
	return [][]byte{reply[:n]}
}
