package loadserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/tests/precision"
	"oneway.example/tests/remoteend"
)

// wire relays TCP connections to the load server until reset.
type wire struct {
	l     net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func newWire(t *testing.T, to netip.AddrPort) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			local, err := l.Accept()
			if err != nil {
				return
			}
			remote, err := net.Dial("tcp", to.String())
			if err != nil {
				local.Close()
				return
			}
			w.mu.Lock()
			w.conns = append(w.conns, local, remote)
			w.mu.Unlock()
			running.Go(func() { w.copy(local, remote) })
			running.Go(func() { w.copy(remote, local) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.mu.Lock()
		for _, c := range w.conns {
			c.Close()
		}
		w.mu.Unlock()
		running.Wait()
	})
	return w
}

// copy forwards bytes.
func (w *wire) copy(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
}

// reset resets the connections to the load server.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < len(w.conns); i += 2 {
		_ = w.conns[i].(*net.TCPConn).SetLinger(0)
		w.conns[i].Close()
	}
}

// joinOver is ready through a wire.
func (s *site) joinOver(w *wire) *peer {
	s.t.Helper()
	c, err := loadcontrol.Dial(s.t.Context(), loadcontrol.ClientOptions{Address: w.l.Addr().String(), Pin: s.r.Pin(), Token: s.tokens["a"]})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	p, err := s.open(c, 1<<30)
	if err == nil {
		err = p.prove()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// streaming starts a reverse stream of 20 s and waits for its first packets.
func (p *peer) streaming() {
	t := p.site.t
	t.Helper()
	long := transferOf(1, sample.Reverse)
	long.Plan.Segments[0].Bursts, long.Idle = 20_000, time.Minute
	if _, err := p.session.Expect(1, long.Plan); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Start(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	remoteend.Eventually(t, "packets", func() bool { return p.endpoint.Stats().Accepted > 20 })
}

// wantSilence fails unless the stream and the session end, on an idle machine within a time.
func (p *peer) wantSilence(within time.Duration, reason string) {
	s, t := p.site, p.site.t
	t.Helper()
	begin := time.Now()
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended[reason] == 1 })
	if took := time.Since(begin); took > within+10*time.Millisecond {
		precision.Missed(t, fmt.Errorf("the stream ended after %v, want %v at most", took, within))
	}
	before := p.endpoint.Stats()
	if !waitFor(200 * time.Millisecond) {
		return
	}
	after := p.endpoint.Stats()
	if n := after.Accepted + sum(after.Ignored) - before.Accepted - sum(before.Ignored); n > 2 { // those in the socket buffer
		t.Errorf("%d packets came after the end", n)
	}
	if _, _, held := s.links.Holder(DefaultLink); held || s.r.Status().Sessions != 0 {
		t.Error("the link is still held")
	}
}

func sum(counts [stream.Reasons]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// waitFor is a fixed wait, in which no packet must arrive.
func waitFor(d time.Duration) bool {
	<-time.After(d)
	return true
}

func TestStreamStopsWithinASecondWhenTheConnectionBreaks(t *testing.T) {
	s := newSite(t, Options{}, "a")
	w := newWire(t, s.r.Addrs()[0])
	p := s.joinOver(w)
	p.streaming()
	w.reset()
	p.wantSilence(second, "lost")
}

func TestStreamStopsWithinASecondWhenTheClientCloses(t *testing.T) {
	s := newSite(t, Options{}, "a")
	p := s.ready("a", 1<<30)
	p.streaming()
	p.Close()
	p.wantSilence(second, "closed")
}

func TestSessionEndsAndServerRepliesAfterRestart(t *testing.T) {
	s := newSite(t, Options{}, "a per-day=2GB")
	p := s.ready("a", 1<<30)
	p.streaming()
	var ended atomic.Bool
	go func() {
		s.stop()
		ended.Store(true)
	}()
	remoteend.Eventually(t, "the load server's end", ended.Load)
	<-p.Done()
	if r, ok := errors.AsType[*loadcontrol.Refusal](p.Err()); !ok || r.Reason != loadcontrol.ShuttingDown || r.RetryAfter <= 0 {
		t.Errorf("the client's error is %v", p.Err())
	}
	p.wantSilence(0, "shutting_down")
	s.start()
	// The bytes that the cut stream did not send are available again.
	if _, err := s.join("a", 1_900_000_000); err != nil {
		t.Error(err)
	}
}

func TestConnectionWithoutARequestIsClosed(t *testing.T) {
	s := newSite(t, Options{opening: second, idle: second}, "a")
	c, err := s.dial("a")
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if r := remoteend.Refusal(t, c.Err()); r.Reason != loadcontrol.TimeLimit {
		t.Errorf("without Open: %v", r)
	}
	p := s.ready("a", 1<<20)
	long := transferOf(1, sample.Reverse)
	long.Plan.Segments[0].Bursts = 1500 // longer than the idle limit
	if _, err := p.Start(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Wait(t.Context(), 1); err != nil {
		t.Fatalf("a transfer counts as idle: %v", err)
	}
	<-p.Done()
	if r := remoteend.Refusal(t, p.Err()); r.Reason != loadcontrol.TimeLimit {
		t.Errorf("after the transfer: %v", r)
	}
	remoteend.Eventually(t, "the link is free", func() bool { _, _, held := s.links.Holder(DefaultLink); return !held })
}

// The client of a reverse stream still awaits its packets for a time: so long the session is not idle.
func TestSessionOutlastsTheWaitForPacketsOfAReverseStream(t *testing.T) {
	s := newSite(t, Options{idle: 100 * time.Millisecond}, "a")
	p := s.ready("a", 1<<20)
	x := transferOf(1, sample.Reverse)
	x.Idle = 2 * second
	begin := time.Now()
	if _, err := p.Start(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if took := time.Since(begin); took < x.Plan.Duration()+x.Idle {
		t.Errorf("the session ended after %v, while its client waited for packets", took)
	}
	if r := remoteend.Refusal(t, p.Err()); r.Reason != loadcontrol.TimeLimit {
		t.Errorf("%v", r)
	}
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Ended["time_limit"] == 1 })
}

func TestPeerThatDoesNotReadTimesOut(t *testing.T) {
	l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := Options{MaxConnections: 1, writing: 100 * time.Millisecond}
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := gatedListener{allowedListener{l, newGate(&o, func(loadcontrol.Reason) {})}}.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c := <-accepted
	defer c.Close()
	for {
		if _, err = c.Write(make([]byte, 1<<20)); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// zoned is a listener at a link-local address of the interface eth7.
type zoned struct{ net.Listener }

func (z zoned) Addr() net.Addr {
	at := *z.Listener.Addr().(*net.TCPAddr)
	at.Zone = "eth7"
	return &at
}

// A session opens further ports at the local address of its connection, which must have the interface if it is link-local.
func TestConnectionHasTheInterfaceOfItsListener(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for want, l := range map[string]net.Listener{"": l, "eth7": zoned{l}} {
		peer, err := net.Dial("tcp", "[::1]:"+strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		o := Options{MaxConnections: 2}
		c, err := gatedListener{allowedListener{l, newGate(&o, func(loadcontrol.Reason) {})}}.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := c.LocalAddr().(*net.TCPAddr); got.Zone != want || !got.IP.IsLoopback() {
			t.Errorf("the local address is %v, want the interface %q", got, want)
		}
	}
}
