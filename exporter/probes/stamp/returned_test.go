package stamp

import (
	"context"
	"net"
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
	var hosts [2]net.Conn
	for i, peer := range []string{b.peer, newTestbed(t, reflector.Options{}).peer} {
		conn, err := net.Dial("udp4", peer)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		hosts[i] = conn
	}
	var at atomic.Int32
	peer := fakePeer(t, func(q []byte) [][]byte {
		conn := hosts[at.Load()]
		reply := make([]byte, 2000)
		_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // it cannot fail
		if _, err := conn.Write(q); err != nil {
			return nil
		}
		n, err := conn.Read(reply)
		if err != nil {
			return nil
		}
		return [][]byte{reply[:n]}
	})
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
