package loadserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/freeport"
	"oneway.example/tests/remoteend"
)

// leased is a type of traffic that passes its host to the test.
type leased struct {
	hosts    chan traffic.Host
	mu       sync.Mutex
	received []string // names of messages, and "closed"
}

func (*leased) Name() string                     { return "leased" }
func (l *leased) New(traffic.Env) traffic.Remote { return l }

func (l *leased) Listen(netip.AddrPort) (func(), error) { return l.Close, nil }

func (*leased) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (*leased) Discarded() map[string]uint64  { return map[string]uint64{"leased": 7} }
func (l *leased) Close()                      { l.note("closed") }
func (l *leased) note(name string)            { l.mu.Lock(); l.received = append(l.received, name); l.mu.Unlock() }

func (l *leased) names() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.received, " ")
}

func (l *leased) Handle(m *loadcontrol.TrafficMessage) *loadcontrol.Refusal {
	l.note(m.Name)
	if m.Name == "wrong" {
		return loadcontrol.Reject("this is wrong")
	}
	return nil
}

func (l *leased) Open(h traffic.Host, parameters json.RawMessage) (traffic.Session, any, *loadcontrol.Refusal) {
	if string(parameters) == `"no"` {
		return nil, nil, loadcontrol.Reject("invalid parameters")
	}
	l.hosts <- h
	return l, parameters, nil
}

// lease runs a load server with that traffic only.
func lease(t *testing.T, o Options, lines ...string) (*site, *leased) {
	t.Helper()
	l := &leased{hosts: make(chan traffic.Host, 1)}
	s := newSiteOf(t, o, []traffic.Type{l}, lines...)
	return s, l
}

// lease opens a session with the traffic and returns its host.
func (s *site) lease(l *leased, bytes int64) (*loadcontrol.Client, traffic.Host) {
	s.t.Helper()
	c, err := s.dial("a")
	if err != nil {
		s.t.Fatal(err)
	}
	opened, err := c.Open(s.t.Context(), loadcontrol.Open{Traffic: "leased", Parameters: json.RawMessage(`"what"`), Run: "r", Bytes: bytes, Duration: time.Minute}, nil)
	if err != nil || string(opened.Reply) != `"what"` {
		s.t.Fatalf("%s, %v", opened.Reply, err)
	}
	return c, <-l.hosts
}

func TestSessionTakesAtMostTheAnnouncedBytes(t *testing.T) {
	s, l := lease(t, Options{}, "a")
	_, h := s.lease(l, 1000)
	for _, c := range []struct {
		bytes int64
		ok    bool
	}{{600, true}, {401, false}, {400, true}, {0, true}, {1, false}, {-400, true}, {401, false}, {400, true}} {
		if r := h.Take(c.bytes); (r == nil) != c.ok || r != nil && r.Reason != loadcontrol.BadRequest {
			t.Errorf("%d bytes: %v, want ok %t", c.bytes, r, c.ok)
		}
	}
}

func TestMovedBytesAreCountedAndTheRestReleased(t *testing.T) {
	s, l := lease(t, Options{}, "a per-day=10kB")
	if err := s.links.SetLinks([]link.Options{{Name: DefaultLink, QuotaBytes: 100_000}}); err != nil {
		t.Fatal(err)
	}
	c, h := s.lease(l, 9000)
	h.CountTransfer()
	h.CountBytes(sample.Forward, 1000, 40)
	h.CountBytes(sample.Reverse, 2000, 80)
	if left := s.r.usage.Usage("a", 10_000).Left; left != 1000 {
		t.Errorf("%d bytes are left during the session, want those not reserved", left)
	}
	c.Close()
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended["closed"] == 1 })
	if st := s.r.Status(); st.Received != 1000 || st.Sent != 2000 || st.Started != 1 || st.Discarded["leased"] != 7 {
		t.Errorf("%+v", st)
	}
	if left := s.r.usage.Usage("a", 10_000).Left; left != 7000 {
		t.Errorf("%d bytes are left of the token's day, want the quota less the payload", left)
	}
	if u := s.links.Usage(DefaultLink); u.Used != 3120 || u.Reserved != 0 {
		t.Errorf("%+v, want payload and headers", u)
	}
	if got := l.names(); got != "closed" {
		t.Errorf("the traffic received %q, want closed once", got)
	}
}

func TestRefusedParametersReleaseTheLinkAndTheBytes(t *testing.T) {
	s, _ := lease(t, Options{}, "a per-day=10kB")
	c, err := s.dial("a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Open(t.Context(), loadcontrol.Open{Traffic: "leased", Parameters: json.RawMessage(`"no"`), Run: "r", Bytes: 9000, Duration: time.Minute}, nil)
	if r := remoteend.Refusal(t, err); r.Detail != "invalid parameters" {
		t.Errorf("%v", r)
	}
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Connections == 0 })
	if left := s.r.usage.Usage("a", 10_000).Left; left != 10_000 {
		t.Errorf("%d bytes are left of the day", left)
	}
	if _, _, held := s.links.Holder(DefaultLink); held || s.r.Status().Opened != 0 {
		t.Error("the link is still held")
	}
}

func TestUnknownTrafficIsRefusedByNameWithTheListAndTheVersion(t *testing.T) {
	s, _ := lease(t, Options{}, "a")
	for name, want := range map[string]string{
		"udp":                             `traffic "udp" is unknown to this load server, oneway 1.2.3; it has leased`,
		"":                                `traffic "" is unknown to this load server, oneway 1.2.3; it has leased`,
		"a\nb" + strings.Repeat("x", 100): `traffic "a\nb` + strings.Repeat("x", 37) + `" is unknown to this load server, oneway 1.2.3; it has leased`,
	} {
		c, err := s.dial("a")
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Open(t.Context(), loadcontrol.Open{Traffic: name, Run: "r", Bytes: 1, Duration: time.Second}, nil)
		if r := remoteend.Refusal(t, err); r.Reason != loadcontrol.WrongVersion || r.Detail != want || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	if n := s.r.Status(); n.Refused[loadcontrol.WrongVersion] != 3 || n.Opened != 0 {
		t.Errorf("%+v", n)
	}
}

func TestTrafficReceivesMessagesInAnOpenSessionOnly(t *testing.T) {
	s, l := lease(t, Options{}, "a")
	early, err := s.dial("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := early.SendMessage("early", nil); err != nil {
		t.Fatal(err)
	}
	<-early.Done()
	if r := remoteend.Refusal(t, early.Err()); r.Reason != loadcontrol.BadRequest || r.Detail != "the session is not open" {
		t.Errorf("%v", r)
	}
	c, _ := s.lease(l, 1)
	for _, name := range []string{"one", "two", "wrong"} {
		if err := c.SendMessage(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	<-c.Done()
	if r := remoteend.Refusal(t, c.Err()); r.Reason != loadcontrol.BadRequest || r.Detail != "this is wrong" {
		t.Errorf("%v", r)
	}
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended["protocol"] == 1 })
	if got := l.names(); got != "one two wrong closed" {
		t.Errorf("the traffic received %q", got)
	}
}

func TestTrafficEndsItsSessionWithAReason(t *testing.T) {
	s, l := lease(t, Options{}, "a")
	for word, why := range map[string]error{"silent": traffic.ErrIdleTimeout, "time_limit": &loadcontrol.Refusal{Reason: loadcontrol.TimeLimit, Detail: "too late"}} {
		c, h := s.lease(l, 1)
		h.End(why)
		<-c.Done()
		remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended[word] == 1 })
		remoteend.Eventually(t, "the link is free", func() bool { _, _, held := s.links.Holder(DefaultLink); return !held })
		if r := remoteend.Refusal(t, c.Err()); word == "silent" && (r.Reason != loadcontrol.Lost || r.Detail != fmt.Sprintf("nothing was received from %v for 10 s: does a firewall drop it?", h.Remote())) {
			t.Errorf("the client's error is %v", c.Err())
		}
		if r, ok := errors.AsType[*loadcontrol.Refusal](why); ok && *remoteend.Refusal(t, c.Err()) != *r {
			t.Errorf("the client's error is %v", c.Err())
		}
	}
	if n := s.r.Status().Refused[loadcontrol.TimeLimit]; n != 1 {
		t.Errorf("%d refusals with time_limit, want 1", n)
	}
}

// free returns a range of n ports that are free.
func free(t *testing.T, n uint16) option.Ports {
	t.Helper()
	first := freeport.Range(t, int(n))
	return option.Ports{First: first, Last: first + n - 1}
}

// dialFrom connects from an address of loopback.
func dialFrom(t *testing.T, local string, to net.Addr) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	c, err := d.DialContext(t.Context(), "tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestFurtherSocketsRejectSourcesThatAreNotAllowed(t *testing.T) {
	s, l := lease(t, Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, "a")
	_, h := s.lease(l, 1)
	o, err := h.Listen(net.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	unknownPeer := dialFrom(t, "127.0.0.2", o.Addr())
	client := dialFrom(t, "127.0.0.1", o.Addr())
	c, err := o.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.RemoteAddr().String() != client.LocalAddr().String() {
		t.Errorf("%v was accepted, want only %v", c.RemoteAddr(), client.LocalAddr())
	}
	if err := unknownPeer.SetReadDeadline(time.Now().Add(remoteend.Timeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := unknownPeer.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection of the other source is not closed: %v", err)
	}
	if n := s.r.Status().Refused[loadcontrol.Unauthorized]; n != 1 {
		t.Errorf("%d refused, want 1", n)
	}
}

func TestFurtherSocketsAreOfTheRangeAndClosedWithTheSession(t *testing.T) {
	ports := free(t, 3)
	s, l := lease(t, Options{Ports: ports}, "a")
	c, h := s.lease(l, 1)
	var open []net.Listener
	for range 3 {
		o, err := h.Listen(net.ListenConfig{})
		if err != nil {
			t.Fatal(err)
		}
		at := o.Addr().(*net.TCPAddr).AddrPort()
		if at.Addr() != h.Local().Addr() || at.Port() < ports.First || at.Port() > ports.Last {
			t.Errorf("%v, want a port of %v at %v", at, ports, h.Local().Addr())
		}
		open = append(open, o)
	}
	if _, err := h.Listen(net.ListenConfig{}); err == nil || !strings.Contains(err.Error(), "no port of "+ports.String()+" is free") {
		t.Errorf("a fourth socket in a range of three: %v", err)
	}
	open[1].Close()
	again, err := h.Listen(net.ListenConfig{})
	if err != nil || again.Addr().String() != open[1].Addr().String() {
		t.Errorf("the port of a closed socket is not free: %v", err)
	}
	if n := len(h.(*session).sockets); n != 3 {
		t.Errorf("the session knows %d sockets, want the 3 that are open", n)
	}
	c.Close()
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended["closed"] == 1 })
	for _, o := range open {
		if _, err := net.Dial("tcp", o.Addr().String()); err == nil {
			t.Errorf("%v is still open", o.Addr())
		}
	}
}

// greedy uses all ports of the range, and then refuses.
type greedy struct{ leased }

func (g *greedy) New(traffic.Env) traffic.Remote { return g }

func (g *greedy) Open(h traffic.Host, _ json.RawMessage) (traffic.Session, any, *loadcontrol.Refusal) {
	for {
		if _, err := h.Listen(net.ListenConfig{}); err != nil {
			return nil, nil, &loadcontrol.Refusal{Reason: loadcontrol.TooMany, Detail: err.Error()}
		}
	}
}

func TestSocketsOfARefusedSessionAreClosed(t *testing.T) {
	ports := free(t, 2)
	s := newSiteOf(t, Options{Ports: ports}, []traffic.Type{&greedy{}}, "a")
	c, err := s.dial("a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Open(t.Context(), loadcontrol.Open{Traffic: "leased", Run: "r", Bytes: 1, Duration: time.Minute}, nil)
	if r := remoteend.Refusal(t, err); r.Reason != loadcontrol.TooMany {
		t.Errorf("%+v", r)
	}
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), ports.First).String()
	remoteend.Eventually(t, "the port is free", func() bool {
		l, err := net.Listen("tcp", at)
		if err == nil {
			err = l.Close()
		}
		return err == nil
	})
}

func TestAllowIgnoresTheZoneOfASource(t *testing.T) {
	o := Options{Allow: []netip.Prefix{netip.MustParsePrefix("fe80::/10")}}
	for a, want := range map[string]bool{"fe80::1": true, "fe80::1%eth0": true, "2001:db8::1": false} {
		if got := o.allowed(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s is allowed: %v, want %v", a, got, want)
		}
	}
}
