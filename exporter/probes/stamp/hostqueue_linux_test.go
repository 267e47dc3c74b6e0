package stamp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/target"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
	"oneway.example/tests/namespace"
)

// TestWaitInAQueueOfThisHostIsTold: other traffic of this host stands in its shaper for 300 ms, and test packets with it.
func TestWaitInAQueueOfThisHostIsTold(t *testing.T) {
	local, remote := namespace.New(t), namespace.New(t)
	namespace.Veth(t, local, "up", remote, "down", 0)
	namespace.Up(t, local, "up", "10.79.1.1/24")
	namespace.Up(t, remote, "down", "10.79.1.2/24")
	const rate = 125_000 // bytes a second
	namespace.Do(t, local, func() {
		link, err := netlink.LinkByName("up")
		namespace.Check(t, err)
		namespace.Check(t, netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       rate, Limit: 10 * rate, Buffer: netlink.Xmittime(rate, 3000),
		}))
	})
	peer := netip.MustParseAddrPort("10.79.1.2:862")
	namespace.Do(t, remote, func() { tellTTL(t, peer) })
	waits := fillShaper(t, local, remote, rate)
	b, sink := newTestbed(t, reflector.Options{}), &metrictest.Sink{}
	b.env.Sink = sink
	o := quick()
	o.Interval, o.LossTimeout, o.Window = 50*time.Millisecond, 2*time.Second, 2*time.Second
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: peer.String()}, o)
	namespace.Check(t, err)
	series := newSeries(sink, "p", "stamp")
	var m target.Measurement
	namespace.Do(t, local, func() { m, err = p.open(t.Context(), peer, series) })
	namespace.Check(t, err)
	got := time.Duration(0)
	await.That(t, "a median", func() bool {
		v, known := sink.Value(metric.HostQueue, "p", "stamp", "0.5")
		got = time.Duration(v * 1e9)
		return known
	})
	s := p.session.Load()
	s.mu.Lock()
	v := s.snapshot()
	s.mu.Unlock()
	m.End()
	series.scope.Close()
	all := waits()
	if low, high := all[0], all[len(all)-1]; got < low || got > high {
		t.Errorf("median wait %v, of other packets %v to %v", got, low, high)
	}
	if !slices.ContainsFunc(v.results(), func(r probe.Result) bool {
		return r.Quantity == "wait in this host" && r.Direction == sample.Forward.String()
	}) {
		t.Errorf("results %+v have no wait of the forward direction", v.results())
	}
	if r := reportOf(v); !slices.ContainsFunc(r.notes(), func(note string) bool { return strings.HasPrefix(note, "test packets waited") }) {
		t.Errorf("notes %q do not tell the wait", r.notes())
	}
}

// fillShaper makes a queue of 300 ms in the shaper of local, which has this rate. It returns how to end it, and to get the times of its packets from user
// space to user space, the shortest first, without those that make the queue.
func fillShaper(t *testing.T, local, remote netns.NsHandle, rate int) (waits func() []time.Duration) {
	t.Helper()
	const size = 1000
	var from, to net.PacketConn
	var err error
	namespace.Do(t, remote, func() { to, err = net.ListenPacket("udp4", "10.79.1.2:9") })
	namespace.Check(t, err)
	namespace.Do(t, local, func() { from, err = net.ListenPacket("udp4", "10.79.1.1:9") })
	namespace.Check(t, err)
	var both sync.WaitGroup
	stop := make(chan struct{})
	var all []time.Duration
	first := rate * 3 / 10 / size
	both.Go(func() {
		b := make([]byte, size)
		send := func() {
			binary.NativeEndian.PutUint64(b, uint64(instant.Now()))
			_, _ = from.WriteTo(b, to.LocalAddr())
		}
		begun := time.Now()
		every := time.NewTicker(5 * time.Millisecond)
		defer every.Stop()
		for n := 0; ; {
			// The queue shrinks slowly: the link layer's header is a part of the rate, and test packets are.
			for due := first + int(time.Since(begun).Seconds()*float64(rate)*0.88/size); n < due; n++ {
				send()
			}
			select {
			case <-stop:
				return
			case <-every.C:
			}
		}
	})
	both.Go(func() {
		b := make([]byte, 2*size)
		for n := 0; ; n++ {
			if _, _, err := to.ReadFrom(b); err != nil {
				return
			}
			if n > first {
				all = append(all, instant.Now().Sub(instant.Time(binary.NativeEndian.Uint64(b))))
			}
		}
	})
	return func() []time.Duration {
		close(stop)
		namespace.Check(t, to.Close())
		both.Wait()
		namespace.Check(t, from.Close())
		slices.Sort(all)
		return all
	}
}

// TestPacketWithoutATransmitTimestampWaitedLongest: the kernel told nothing within the time that it is waited for.
func TestPacketWithoutATransmitTimestampWaitedLongest(t *testing.T) {
	w := newWheel(t)
	e := w.s.estimator
	for i := range 8 {
		e.left(1000, sample.Stamp{At: instant.Time(1000 + 10*(i+1)), Origin: sample.Kernel})
	}
	e.left(1000, sample.Stamp{At: 900, Origin: sample.Kernel}) // the clock was set back
	e.left(1000, sample.Stamp{At: 1000, Origin: sample.Hardware})
	e.left(1000, sample.Stamp{At: 1000, Origin: sample.User})
	q := e.soFar(w.s.account.Known()).hostQueue.distribution()
	if q == nil || *q.Min != 0 || *q.P50 != 40e-9 || q.P95 != nil {
		t.Errorf("min %v, p50 %v, p95 %v", *q.Min, *q.P50, q.P95)
	}
	for range 20 {
		e.left(1000, sample.Stamp{At: 1000, Origin: sample.User})
	}
	if q = e.soFar(w.s.account.Known()).hostQueue.distribution(); q.P50 != nil || !queued(q) {
		t.Errorf("most packets have no timestamp: %+v", q)
	}
	e.close(w.s.account.Known())
	if q = e.soFar(w.s.account.Known()).hostQueue.distribution(); q != nil || queued(q) {
		t.Errorf("an empty window: %+v", q)
	}
}
