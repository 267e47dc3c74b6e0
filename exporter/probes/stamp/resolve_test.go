package stamp

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// names is a name server that resolves every name to 127.0.0.1, to another host of that network, or to no address.
type names struct {
	conn   net.PacketConn
	known  atomic.Bool
	host   atomic.Int32 // 0: 1
	told   atomic.Int64 // replies with an address
	denied atomic.Int64
}

// serveNames redirects all name lookups of this process there until the test ends.
func serveNames(t *testing.T) *names {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, ended, before := &names{conn: c}, make(chan struct{}), net.DefaultResolver
	go func() {
		defer close(ended)
		n.serve(t)
	}()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := net.Dialer{Resolver: before} // a canceled lookup may outlast the test
		return d.DialContext(ctx, "udp4", c.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		c.Close()
		<-ended
	})
	return n
}

func (n *names) serve(t *testing.T) {
	for b := make([]byte, 1500); ; {
		size, from, err := n.conn.ReadFrom(b)
		if err != nil {
			return // closed
		}
		var m dnsmessage.Message
		if err := m.Unpack(b[:size]); err != nil || len(m.Questions) != 1 {
			t.Errorf("request %v, %v", m, err)
			return
		}
		q := m.Questions[0]
		reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
		switch {
		case !n.known.Load():
			reply.RCode = dnsmessage.RCodeNameError
		case q.Type == dnsmessage.TypeA:
			reply.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, byte(max(n.host.Load(), 1))}},
			}}
		}
		packed, err := reply.Pack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = n.conn.WriteTo(packed, from)
		if q.Type == dnsmessage.TypeA {
			if len(reply.Answers) > 0 {
				n.told.Add(1)
			} else {
				n.denied.Add(1)
			}
		}
	}
}

func TestNameThatStopsResolvingIsOneLine(t *testing.T) {
	server, b := serveNames(t), newTestbed(t, reflector.Options{})
	var said bytes.Buffer // read when Run has ended
	b.env.Log = slog.New(slog.NewTextHandler(&said, nil))
	o := DefaultOptions()
	o.Interval, o.ResolveInterval = 100*time.Millisecond, time.Second
	_, port, _ := net.SplitHostPort(b.peer)
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: net.JoinHostPort("peer.test", port)}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for range 2 {
		for _, known := range []bool{false, true} {
			server.known.Store(known)
			count := &server.denied
			if known {
				count = &server.told
			}
			enough := count.Load() + 3
			await.That(t, fmt.Sprintf("three lookups, with an address (%v)", known), func() bool { return count.Load() >= enough })
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	failed := strings.Count(said.String(), `level=WARN msg="The path has a fault" path=p probe=stamp fault="the peer's name gives no address"`)
	over := strings.Count(said.String(), `level=INFO msg="The path's fault is over" path=p probe=stamp fault="the peer's name gives no address"`)
	if failed != 2 || over != 2 || strings.Count(said.String(), "\n") != 4 {
		t.Errorf("the name did not resolve twice, for three lookups or more; log:\n%s", &said)
	}
}

func TestCountersGoOnWhenThePeersAddressChanges(t *testing.T) {
	server, b := serveNames(t), newTestbed(t, reflector.Options{})
	first := netip.MustParseAddrPort(b.peer)
	second := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), first.Port())
	newTestbed(t, reflector.Options{Listen: []netip.AddrPort{second}})
	sink := &metrictest.Sink{}
	b.env.Sink = sink
	o := quick()
	o.ResolveInterval = time.Second
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: net.JoinHostPort("peer.test", strconv.Itoa(int(first.Port())))}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	counters := []*metric.Desc{metric.PacketsSent, metric.PacketsReceived, metric.RoundTripReceived, metric.Timestamps}
	last := map[string]float64{}
	// until waits until the path has this peer and has sent so many packets; no counter decreases.
	until := func(peer string, sent float64) {
		t.Helper()
		var facts []string
		if !await.Within(await.Timeout, func() bool {
			for _, d := range counters {
				now := sink.Present(d.Name + "{")
				for key, was := range last {
					if v, ok := now[key]; strings.HasPrefix(key, d.Name+"{") && (!ok || v < was) {
						t.Fatalf("%s was %v and is %v (%v)", key, was, v, ok)
					}
				}
				maps.Copy(last, now)
			}
			facts = slices.Collect(maps.Keys(sink.All(metric.PathInfo)))
			return len(facts) == 1 && strings.Contains(facts[0], peer) && strings.Contains(facts[0], ",oneway,") && last["oneway_packets_sent_total{p,stamp,forward}"] >= sent
		}) {
			t.Fatalf("no %v packets to %s after %v: %v, %v", sent, peer, await.Timeout, facts, last)
		}
	}
	server.known.Store(true)
	until(first.String(), 500)
	former := p.session.Load()
	server.host.Store(2)
	until(second.String(), 0)
	present := p.session.Load()
	until(second.String(), last["oneway_packets_sent_total{p,stamp,forward}"]+100)
	stays := sink.Series(metric.PacketsSent, "p", "stamp", "forward")
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	lives := [2]uint64{former.account.Next(), present.account.Next()}
	if v, _ := sink.Value(metric.PacketsSent, "p", "stamp", "forward"); v != float64(lives[0]+lives[1]) {
		t.Errorf("%v packets counted as sent, want the sum of %d", v, lives)
	}
	if stays.Close(); sink.Open() > 0 {
		t.Errorf("%d series are open after the end", sink.Open())
	}
}

func TestSilentPathWhoseNameNoLongerResolvesHasBothReasons(t *testing.T) {
	server, b := serveNames(t), newTestbed(t, reflector.Options{})
	_, peer, stop := openTestbed(t, reflector.Options{Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	server.known.Store(true)
	var said bytes.Buffer // read when Run has ended
	b.env.Log = slog.New(slog.NewTextHandler(&said, nil))
	o := quick()
	o.ResolveInterval = time.Second
	_, port, _ := net.SplitHostPort(peer)
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: net.JoinHostPort("peer.test", port)}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	await.That(t, "the path is up", func() bool { return p.Status().Up })
	server.known.Store(false)
	await.That(t, "a lookup fails", func() bool { return server.denied.Load() > 3 })
	if s := p.Status(); !s.Up || strings.Contains(s.Reason, "its name") {
		t.Errorf("a path with replies has the reason %q", s.Reason)
	}
	stop()
	await.That(t, "the path is down", func() bool { s := p.Status(); return !s.Up && s.State == "no reply" })
	const want = "; this address may be an old one, as its name gives none now: peer \"peer.test\": lookup peer.test"
	if s := p.Status(); !strings.Contains(s.Reason, want) || !strings.HasPrefix(s.Reason, "udp 127.0.0.1:"+port) {
		t.Errorf("the reason is %q", s.Reason)
	}
	server.known.Store(true)
	await.That(t, "the name resolves again", func() bool { return !strings.Contains(p.Status().Reason, "its name") })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "its name gives none now") {
		t.Errorf("the log says\n%s", &said)
	}
}

func TestPathWhoseNameNeverResolvedIsDown(t *testing.T) {
	serveNames(t)
	b, sink := newTestbed(t, reflector.Options{}), &metrictest.Sink{}
	b.env.Sink = sink
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: "peer.test:862"}, quick())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	await.That(t, "the path is down", func() bool {
		up, present := sink.Value(metric.ProbeUp, "p", "stamp")
		return present && up == 0
	})
	await.That(t, "the path says why", func() bool { return p.Status().Cause == string(lightreason.Unresolved) })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if sink.Open() > 0 {
		t.Errorf("%d series are open after the end", sink.Open())
	}
}
