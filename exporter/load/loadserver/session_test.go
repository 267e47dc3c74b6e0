package loadserver

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/tests/remoteend"
)

func TestStreamsRunInBothDirections(t *testing.T) {
	s := newSite(t, Options{}, "a rate=20Mbit per-day=1MB")
	p := s.ready("a", 200_000)
	forward := transferOf(1, sample.Forward)
	forward.Idle = udptraffic.MaxIdle // all packets arrive, but a busy machine may pause
	if _, err := p.Start(t.Context(), forward); err != nil {
		t.Fatal(err)
	}
	sent, err := p.session.Send(t.Context(), 1, p.at(), forward.Plan, stream.SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Sent(t.Context(), 1, len(sent.Packets)-sent.Refused); err != nil {
		t.Fatal(err)
	}
	f, records, err := p.Wait(t.Context(), 1)
	if err != nil || f.Error != "" || f.Received == nil || f.Clock.Reason != "ok" || f.Clock.Bound == 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	got, err := stream.ParseReceived(records, stream.MaxPackets)
	if err != nil || len(got) != 100 {
		t.Errorf("%d packets arrived, %v", len(got), err)
	}

	reverse := transferOf(2, sample.Reverse)
	reverse.Idle = udptraffic.MaxIdle
	reception, err := p.session.Expect(2, reverse.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Start(t.Context(), reverse); err != nil {
		t.Fatal(err)
	}
	f, records, err = p.Wait(t.Context(), 2)
	if err != nil || f.Error != "" || f.Sent == nil {
		t.Fatalf("%+v, %v", f, err)
	}
	back, err := stream.ParseSent(records, stream.MaxPackets)
	if err != nil || len(back) != 100 {
		t.Errorf("%d packets were sent, %v", len(back), err)
	}
	if n := len(reception.Finish(t.Context(), 100, remoteend.Timeout).Packets); n != 100 {
		t.Errorf("%d packets came back", n)
	}
	p.Close()
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended["closed"] == 1 })
	st := s.r.Status()
	if st.Received != 50_000 || st.Sent != 50_000 || st.Opened != 1 || st.Started != 2 || st.Sessions != 0 {
		t.Errorf("%+v", st)
	}
	if left := s.r.usage.Usage("a", 1_000_000).Left; left != 900_000 {
		t.Errorf("%d bytes are left of the day", left)
	}
	if _, _, held := s.links.Holder(DefaultLink); held {
		t.Error("the link is still held")
	}
}

// A load server on all addresses replies from the address to which the client has sent.
func TestStreamsRunOverBothFamilies(t *testing.T) {
	all := []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), 0)}
	clients := []string{"127.0.0.1", "127.0.0.2"}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		l.Close()
		all, clients = append(all, netip.AddrPortFrom(netip.IPv6Unspecified(), 0)), append(clients, "::1")
	} else {
		t.Logf("SKIPPED, NOT PASSED: no IPv6 on this host: %v", err)
	}
	s := newSite(t, Options{Listen: all}, "a")
	for _, client := range clients {
		addr := netip.MustParseAddr(client)
		for _, a := range s.r.Addrs() {
			if a.Addr().Is4() == addr.Is4() {
				s.at = netip.AddrPortFrom(addr, a.Port())
			}
		}
		p := s.ready("a", 1<<20)
		reverse := transferOf(1, sample.Reverse)
		reception, err := p.session.Expect(1, reverse.Plan)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Start(t.Context(), reverse); err != nil {
			t.Fatal(err)
		}
		if f, _, err := p.Wait(t.Context(), 1); err != nil || f.Error != "" {
			t.Fatalf("%s: %+v, %v", client, f, err)
		}
		if n := len(reception.Finish(t.Context(), 100, reverse.Idle).Packets); n != 100 {
			t.Errorf("%s: %d packets came", client, n)
		}
		p.Close()
		remoteend.Eventually(t, "the link is free", func() bool { return s.r.Status().Sessions == 0 })
	}
}

// shared is a type of traffic with a socket beside each address of control; its first Listen calls
// fail.
type shared struct {
	leased
	name    string
	refuses int
	tried   []netip.AddrPort
	open    map[netip.AddrPort]bool
}

func (x *shared) Name() string                   { return x.name }
func (x *shared) New(traffic.Env) traffic.Remote { return x }

func (x *shared) Listen(at netip.AddrPort) (func(), error) {
	x.tried = append(x.tried, at)
	if len(x.tried) <= x.refuses {
		return nil, errors.New("the port is in use")
	}
	x.open[at] = true
	return func() { delete(x.open, at) }, nil
}

// A type that listens already closes its socket if another cannot listen on that port.
func TestAnotherPortIsTriedIfOneTypeCannotListen(t *testing.T) {
	first, second := &shared{name: "a", open: map[netip.AddrPort]bool{}}, &shared{name: "b", refuses: 1, open: map[netip.AddrPort]bool{}}
	s := newSiteOf(t, Options{}, []traffic.Type{first, second}, "a")
	at := s.r.Addrs()
	for _, x := range []*shared{first, second} {
		if len(x.tried) != 2 || len(x.open) != 1 || !x.open[at[0]] || x.tried[0] == at[0] {
			t.Errorf("%s: tried %v, open %v; the load server listens on %v", x.name, x.tried, x.open, at)
		}
	}
	s.stop()
	if len(first.open)+len(second.open) != 0 {
		t.Errorf("open after the end: %v, %v", first.open, second.open)
	}
	second.refuses = 2 * portTries
	r, err := New(s.o, Env{Sink: s.sink, Clock: static.New(time.Millisecond, metric.Discard{}), Links: s.links, Traffic: s.all})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err == nil || err.Error() != "loadserver: the port is in use" || len(first.open) != 0 {
		t.Errorf("%v; open %v", err, first.open)
	}
	if n := len(second.tried); n != 2+portTries {
		t.Errorf("%d tries, want %d more", n, portTries)
	}
}
