package reflector

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/tests/await"
)

// running starts a reflector on loopback and stops it at the end of the test.
func running(t testing.TB, o Options, sink metric.Sink) *Reflector {
	t.Helper()
	return runningWith(t, o, Env{Sink: sink, Clock: goodClock()})
}

// runningWith is running with the test's Env.
func runningWith(t testing.TB, o Options, env Env) *Reflector {
	t.Helper()
	if o.Listen == nil {
		o.Listen = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	}
	r, err := New(o, env)
	if err != nil {
		t.Fatal(err)
	}
	await.Serving(t, r)
	return r
}

func dial(t testing.TB, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// exchange sends a request over a socket and waits for its reply.
func (k *poller) exchange(c *net.UDPConn, b []byte) reply {
	k.l.t.Helper()
	if _, err := c.Write(b); err != nil {
		k.l.t.Fatal(err)
	}
	return k.read(c)
}

// read waits for a reply.
func (k *poller) read(c *net.UDPConn) reply {
	k.l.t.Helper()
	pendingReply := make([]byte, 10_000)
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		k.l.t.Fatal(err)
	}
	n, err := c.Read(pendingReply)
	if err != nil {
		k.l.t.Fatalf("no reply: %v", err)
	}
	rep := reply{data: pendingReply[:n]}
	rep.parse(k.l.t, k.key)
	if rep.receipt.Filled {
		k.epoch = rep.receipt.Epoch
	}
	return rep
}

func TestReflectorRepliesOnEveryAddress(t *testing.T) {
	r := running(t, Options{Listen: []netip.AddrPort{
		netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("127.0.0.2:0"), netip.MustParseAddrPort("[::1]:0"),
	}}, metric.Discard{})
	addrs := r.Addrs()
	if len(addrs) != 3 {
		t.Fatalf("listening addresses %v", addrs)
	}
	for _, a := range addrs {
		k := newLab(t, nil).poller("192.0.2.1:1", 5)
		c := dial(t, a)
		for seq := range uint32(3) {
			rep := k.exchange(c, k.request(seq, nil))
			if rep.base.SenderSeq != seq || rep.base.Seq != seq || rep.receipt.Received != seq+1 {
				t.Fatalf("%v: reply %d: %+v", a, seq, rep.base)
			}
		}
	}
	var s Stats
	await.Within(await.Timeout, func() bool { s = r.Stats(); return s.Answered() >= 9 }) // a reply is counted just after it is sent
	if s.Answered() != 9 || s.Sessions != 3 || s.Running <= 0 {
		t.Errorf("stats: answered %d, sessions %d, running %v", s.Answered(), s.Sessions, s.Running)
	}
}

// The kernel's transmit timestamp of a reply must be in the next one, and lie between T3 as read in user space and now.
func TestFollowUpHasTheKernelTimestamp(t *testing.T) {
	r := running(t, Options{}, metric.Discard{})
	k := newLab(t, nil).poller("192.0.2.1:1", 5)
	c := dial(t, r.Addrs()[0])
	before := k.exchange(c, k.request(0, nil))
	told := 0
	for seq := uint32(1); seq < 20; seq++ {
		rep := k.exchange(c, k.request(seq, nil))
		if rep.follow.Mode != 0 {
			told++
			if rep.follow.Seq != seq-1 || rep.follow.T3 < before.base.T3 || rep.follow.T3 > rep.base.T3 {
				t.Errorf("reply %d: follow-up %+v; T3 of the previous reply %#x, of this one %#x", seq, rep.follow, before.base.T3, rep.base.T3)
			}
		}
		before = rep
	}
	if told < 19 {
		t.Errorf("%d of 19 replies have a follow-up", told)
	}
}

func TestRunClosesAllAndExplainsAFailedListen(t *testing.T) {
	taken, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.LocalAddr().(*net.UDPAddr).AddrPort()
	r, err := New(Options{Listen: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.77:0"), port}},
		Env{Sink: metric.Discard{}, Clock: goodClock()})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Run(context.Background())
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "reflector: listen udp "+port.String()) ||
		!strings.Contains(err.Error(), "another program") || !strings.Contains(err.Error(), "192.0.2.77:0: bind: cannot assign requested address: this host does not have this address") {
		t.Errorf("Run: %v", err)
	}
	if len(r.Addrs()) != 0 {
		t.Errorf("open sockets after Run: %v", r.Addrs())
	}
}

// TestAddressThatIsMissingTakesNoOtherDown: the reflector replies at the others, and there when the address is free.
func TestAddressThatIsMissingTakesNoOtherDown(t *testing.T) {
	taken, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.LocalAddr().(*net.UDPAddr).AddrPort()
	r := running(t, Options{Listen: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.77:0"), port, netip.MustParseAddrPort("127.0.0.1:0")}}, metric.Discard{})
	replies := func(at netip.AddrPort) {
		t.Helper()
		k := newLab(t, nil).poller("192.0.2.1:1", 5)
		if rep := k.exchange(dial(t, at), k.request(0, nil)); rep.receipt.Received != 1 {
			t.Errorf("%v: reply %+v", at, rep.base)
		}
	}
	if s := r.Stats(); len(s.Addrs) != 1 || len(s.NotListening) != 2 || s.NotListening[1].Address != port {
		t.Fatalf("listens on %v, not on %v", s.Addrs, s.NotListening)
	}
	replies(r.Addrs()[0])
	taken.Close()
	await.That(t, "the reflector listens on the address that is free now", func() bool { return len(r.Addrs()) == 2 })
	replies(port)
	if s := r.Stats(); len(s.NotListening) != 1 || !errors.Is(s.NotListening[0].Err, syscall.EADDRNOTAVAIL) {
		t.Errorf("not on %v, want the address that this host does not have", s.NotListening)
	}
}

func TestPrivilegedPortIsExplained(t *testing.T) {
	got := explain(netip.MustParseAddrPort("0.0.0.0:862"), syscall.EACCES).Error()
	want := "reflector: listen udp :862 (0.0.0.0): permission denied: ports below 1024 need CAP_NET_BIND_SERVICE; " +
		"run as root, give the program the capability, or listen on a higher port"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{RequireKey: true}, "key_file is missing; require_key needs it"},
		{Options{ShortRequests: true}, "allow is missing; short_requests needs it"},
		{Options{ShortRequests: true, Allow: []netip.Prefix{}}, "allow is missing; short_requests needs it"},
		{Options{MaxSessions: 1}, "max_sessions is 1"},
		{Options{Expiry: time.Millisecond}, "session_expiry is 1ms"},
	} {
		if _, err := New(c.o, Env{Sink: metric.Discard{}, Clock: goodClock()}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	if _, err := New(Options{}, Env{Sink: metric.Discard{}, Clock: goodClock()}); err != nil {
		t.Errorf("the zero Options: %v", err)
	}
}

// signaling signals each Update.
type signaling struct {
	metrictest.Sink
	updated chan struct{}
}

func (s *signaling) Update(f func()) {
	f()
	select {
	case s.updated <- struct{}{}:
	default:
	}
}

func TestMetricsIncludeEveryResult(t *testing.T) {
	sink := &signaling{updated: make(chan struct{}, 1)}
	t.Cleanup(func() {
		if n := sink.Open(); n != 0 {
			t.Errorf("%d series are open after Run, want 0", n)
		}
	})
	r := running(t, Options{}, sink)
	k := newLab(t, nil).poller("192.0.2.1:1", 5)
	c := dial(t, r.Addrs()[0])
	if _, err := c.Write([]byte("short")); err != nil {
		t.Fatal(err)
	}
	k.exchange(c, k.request(0, nil))
	k.exchange(c, k.request(1, nil))
	for range 3 { // one Update may be running already
		<-sink.updated
	}
	told := sink.Present("oneway_reflector_")
	for name, want := range map[string]float64{
		"oneway_reflector_packets_total{reflected}": 2, "oneway_reflector_packets_total{short}": 1,
		"oneway_reflector_packets_total{corrupted}": 0, "oneway_reflector_sessions{}": 1,
	} {
		if got, ok := told[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func TestKeysCanBeReplacedWhileRunning(t *testing.T) {
	old, fresh := newKey(t, "old"), newKey(t, "fresh")
	r := running(t, Options{Keys: []*stampfmt.Key{old}, RequireKey: true}, metric.Discard{})
	k := newLab(t, nil).poller("192.0.2.1:1", 5)
	c := dial(t, r.Addrs()[0])
	k.key = old
	k.exchange(c, k.request(0, nil))
	if err := r.SetKeys([]*stampfmt.Key{fresh}); err != nil {
		t.Fatal(err)
	}
	k.key = fresh
	if rep := k.exchange(c, k.request(1, nil)); rep.receipt.Received != 2 {
		t.Errorf("after the rotation received is %d, want 2", rep.receipt.Received)
	}
	if r.SetKeys(nil) == nil {
		t.Error("SetKeys removed the required key without an error")
	}
}
