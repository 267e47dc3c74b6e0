package stamp

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/target"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// firewall passes the packets of each source port to a reflector over a socket of its own, except from blocked ports.
type firewall struct {
	t    *testing.T
	near *net.UDPConn
	to   string

	mu      sync.Mutex
	flows   map[netip.AddrPort]net.Conn
	blocked []uint16
	held    [2]func() // passes on what has arrived since hold(direction, true); nil: nothing is held
	dropped [2]bool
	former  []net.Conn
	blocks  int // so many more ports are blocked when they are first seen
}

func newFirewall(t *testing.T, to string) *firewall {
	t.Helper()
	near, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	f := &firewall{t: t, near: near, to: to, flows: map[netip.AddrPort]net.Conn{}}
	var running sync.WaitGroup
	running.Go(func() { f.run(&running) })
	t.Cleanup(func() {
		_ = near.Close()
		f.mu.Lock()
		for _, c := range slices.AppendSeq(f.former, maps.Values(f.flows)) {
			_ = c.Close()
		}
		f.mu.Unlock()
		running.Wait()
	})
	return f
}

// block blocks the ports in use, and so many new ones.
func (f *firewall) block(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blocks = more
	for from := range f.flows {
		f.blocked = append(f.blocked, from.Port())
	}
}

func (f *firewall) run(running *sync.WaitGroup) {
	b := make([]byte, 1<<16)
	for {
		n, from, err := f.near.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		pass := func(b []byte) {
			if c := f.flow(running, from); c != nil {
				_, _ = c.Write(b)
			}
		}
		f.pass(sample.Forward, b[:n], pass)
	}
}

// pass calls pass with a packet, at once or when it is held no more.
func (f *firewall) pass(dir sample.Direction, b []byte, pass func([]byte)) {
	f.mu.Lock()
	before, dropped := f.held[dir], f.dropped[dir]
	if before != nil {
		copied := slices.Clone(b)
		f.held[dir] = func() { before(); pass(copied) }
	}
	f.mu.Unlock()
	if before == nil && !dropped {
		pass(b)
	}
}

// rebind gives each flow another port towards the reflector; the former one still passes replies.
func (f *firewall) rebind() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for from, c := range f.flows {
		f.former = append(f.former, c)
		delete(f.flows, from)
	}
}

// drop drops the packets of a direction, or passes them again.
func (f *firewall) drop(dir sample.Direction, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped[dir] = on
}

// hold keeps the packets of a direction; then it passes them on.
func (f *firewall) hold(dir sample.Direction, on bool) {
	f.mu.Lock()
	held := f.held[dir]
	f.held[dir] = nil
	if on {
		f.held[dir] = func() {}
	}
	f.mu.Unlock()
	if held != nil {
		held()
	}
}

// flow returns the socket of a source port; nil: it is blocked.
func (f *firewall) flow(running *sync.WaitGroup, from netip.AddrPort) net.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case slices.Contains(f.blocked, from.Port()):
		return nil
	case f.flows[from] != nil:
		return f.flows[from]
	case f.blocks > 0:
		f.blocks, f.blocked = f.blocks-1, append(f.blocked, from.Port())
		return nil
	}
	c, err := net.Dial("udp4", f.to)
	if err != nil {
		f.t.Error(err)
		return nil
	}
	f.flows[from] = c
	running.Go(func() {
		b := make([]byte, 1<<16)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			f.pass(sample.Reverse, b[:n], func(b []byte) { _, _ = f.near.WriteToUDPAddrPort(b, from) })
		}
	})
	return c
}

// port is the present source port of a path.
func (p *Prober) port() uint16 { return p.session.Load().hub.Load().conn.LocalAddr().Port() }

func (p *Prober) counts() (received, lost, restarts uint64) {
	s := p.session.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account.RoundTripsReceived, s.account.RoundTripsLost, s.account.Restarts
}

// TestSilentPathTakesAnotherSourcePort: what is on the way blocks the source port of a path and the next one, but not a path to
// another address, which shares the socket.
func TestSilentPathTakesAnotherSourcePort(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, reflector.Options{})
	f := newFirewall(t, b.peer)
	var out await.Text
	b.env.Log = slog.New(slog.NewTextHandler(&out, nil))
	kind := NewType()
	kind.portAge = time.Second // later than the outage is logged
	o := DefaultOptions()
	o.Interval, o.LossTimeout = 10*time.Millisecond, 500*time.Millisecond
	start := func(peer string) *Prober {
		p, err := kind.NewProber(b.env, probe.Target{Path: "to " + peer, Probe: "stamp", Peer: peer}, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		await.That(t, "replies", func() bool { return p.Status().Up })
		return p
	}
	silent, live := start(f.near.LocalAddr().String()), start(b.peer)
	port := live.port()
	if silent.port() != port {
		t.Fatalf("the paths send from the ports %d and %d, want one", silent.port(), port)
	}
	f.block(1)
	await.That(t, "another port", func() bool { return silent.port() != port })
	received, _, _ := silent.counts()
	await.That(t, "replies at a third port", func() bool { now, _, _ := silent.counts(); return now > received && silent.Status().Up })
	if silent.port() == port || live.port() != port {
		t.Errorf("ports: %d of the silent path, %d of the live one, both had %d", silent.port(), live.port(), port)
	}
	if _, lost, _ := live.counts(); lost != 0 {
		t.Errorf("the live path lost %d packets", lost)
	}
	replies := func(more uint64) {
		before, _, _ := silent.counts()
		await.That(t, "more replies", func() bool { now, _, _ := silent.counts(); return now > before+more })
	}
	replies(2 * uint64(o.LossTimeout/o.Interval)) // the packets that were blocked are lost by then
	_, lost, _ := silent.counts()
	replies(100)
	if _, now, restarts := silent.counts(); now != lost || restarts != 0 {
		t.Errorf("after the return %d more packets are lost, %d restarts of the reflector", now-lost, restarts)
	}
	if n := strings.Count(out.String(), "sends from another source port"); n != 1 {
		t.Errorf("%d lines, want 1: %s", n, out.String())
	}
	await.That(t, "two sockets", func() bool {
		kind.mu.Lock()
		defer kind.mu.Unlock()
		return len(kind.hubs) == 2
	})
}

// behindFirewall starts a path through a firewall, with a test packet each 20 ms and an own age of its ports. It returns when the path has replies; stop
// ends it.
func behindFirewall(t *testing.T, size int, portAge time.Duration) (p *Prober, f *firewall, kind *Type, o Options, stop func()) {
	t.Helper()
	b := newTestbed(t, reflector.Options{})
	f, kind, o = newFirewall(t, b.peer), NewType(), DefaultOptions()
	kind.portAge = portAge
	o.Interval, o.LossTimeout, o.Size = 20*time.Millisecond, 500*time.Millisecond, size
	p, err := kind.NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: f.near.LocalAddr().String()}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	await.That(t, "replies", func() bool { return p.Status().Up })
	return p, f, kind, o, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestRepliesToFormerPortsAreReceived: a peer that stands still replies to all that waits when it continues, after the path has
// taken another source port twice, or the way back does. Without a Receipt in the test packets our reflector has a session for each port.
func TestRepliesToFormerPortsAreReceived(t *testing.T) {
	for _, size := range []int{DefaultSize(false), stampfmt.UnauthenticatedBytes} {
		for _, held := range sample.Directions() {
			t.Run(fmt.Sprintf("%d bytes/%v", size, held), func(t *testing.T) {
				t.Parallel()
				repliesToFormerPortsAreReceived(t, size, held)
			})
		}
	}
}

func repliesToFormerPortsAreReceived(t *testing.T, size int, held sample.Direction) {
	p, f, kind, o, stop := behindFirewall(t, size, time.Second)
	first := p.port()
	f.hold(held, true)
	await.That(t, "another port", func() bool { return p.port() != first })
	second := p.port()
	await.That(t, "a third port", func() bool { return p.port() != second })
	f.hold(held, false)
	// The first of them are not outstanding any more.
	var lost, replied uint64
	if !await.Within(20*time.Second, func() bool {
		s := p.session.Load()
		s.mu.Lock()
		defer s.mu.Unlock()
		lost, replied = s.account.RoundTripsLost, s.account.AnsweredLate+s.account.Faults().Discarded[ledger.DiscardUnknownSequence]
		// Queries introduce the port of test packets without a Receipt; the replies to them are forgotten, too.
		return lost > 0 && (replied == lost || size < DefaultSize(false) && replied > lost)
	}) {
		t.Errorf("%d of %d late replies arrived", replied, lost)
	}
	await.That(t, "one socket", func() bool {
		kind.mu.Lock()
		defer kind.mu.Unlock()
		return len(kind.hubs) == 1
	})
	received, _, _ := p.counts()
	await.That(t, "replies to the port", func() bool { now, _, _ := p.counts(); return now > received+2*uint64(o.LossTimeout/o.Interval) })
	s := p.session.Load()
	s.mu.Lock()
	v := s.snapshot()
	s.mu.Unlock()
	if v.Restarts != 0 || v.Discarded[ledger.DiscardWrongNumber] != 0 {
		t.Errorf("%d restarts, discarded %v", v.Restarts, v.Discarded)
	}
	// Those without a reply are lost in the direction that held them. A reply to a request that is not remembered any more has no number that
	// counts without a Receipt.
	forgotten := v.Discarded[ledger.DiscardUnknownSequence]
	if size == DefaultSize(false) {
		forgotten = 0
	}
	for dir, d := range v.directions {
		if lost := d.Lost.Value; lost > v.RoundTripsLost || sample.Direction(dir) != held && lost > forgotten {
			t.Errorf("%v: %d of %d packets lost, %d round trips, %d forgotten", sample.Direction(dir), lost, d.Sent.Value, v.RoundTripsLost, forgotten)
		}
	}
	// The last ones that were held took less than the loss timeout in that direction, and more with the way of a busy host. Forward, a request that
	// is forgotten counts as late only if none after it did, which the receivers of two ports do not keep.
	last := uint64(o.LossTimeout / o.Interval)
	if lost := v.directions[held].Lost.Value; held == sample.Reverse && lost+forgotten+last < v.RoundTripsLost {
		t.Errorf("%v, which held them: %d packets lost, %d round trips, %d forgotten", held, lost, v.RoundTripsLost, forgotten)
	}
	if reverse := v.directions[sample.Reverse]; reverse.Sent.Value < v.RoundTripsLost+v.RoundTripsReceived-uint64(3*o.LossTimeout/o.Interval) {
		t.Errorf("%d replies were sent, to %d requests", reverse.Sent.Value, v.RoundTripsLost+v.RoundTripsReceived)
	}
	stop()
	if len(kind.hubs) != 0 {
		t.Errorf("%d sockets are open after the end", len(kind.hubs))
	}
}

// TestOutageOverAChangeOfPortIsOfItsDirection: a direction of the path is dead while it takes another source port. The packets of
// both ports are lost in that direction, also where the test packets have no Receipt.
func TestOutageOverAChangeOfPortIsOfItsDirection(t *testing.T) {
	for _, size := range []int{DefaultSize(false), stampfmt.UnauthenticatedBytes} {
		for _, dead := range sample.Directions() {
			t.Run(fmt.Sprintf("%d bytes/%v", size, dead), func(t *testing.T) {
				t.Parallel()
				p, f, _, _, stop := behindFirewall(t, size, time.Second)
				first := p.port()
				f.drop(dead, true)
				await.That(t, "another port", func() bool { return p.port() != first })
				port := p.port()
				await.That(t, "a third port", func() bool { return p.port() != port })
				f.drop(dead, false)
				received, _, _ := p.counts()
				await.That(t, "replies to the third port", func() bool { now, _, _ := p.counts(); return now > received+200 })
				s := p.session.Load()
				s.mu.Lock()
				v := s.snapshot()
				s.mu.Unlock()
				// The packets on the way when the outage began and ended have either outcome.
				const some = 3
				forward, reverse := v.directions[sample.Forward].Lost.Value, v.directions[sample.Reverse].Lost.Value
				if lost := v.directions[dead].Lost.Value; v.RoundTripsLost < 80 || lost+some < v.RoundTripsLost || forward+reverse > v.RoundTripsLost+some || v.Restarts != 0 {
					t.Errorf("%d lost forward, %d reverse, of %d round trips; %d restarts, discarded %v", forward, reverse, v.RoundTripsLost, v.Restarts, v.Discarded)
				}
				stop()
			})
		}
	}
}

// TestLiveSessionOnAnotherNATPortLosesNothing: what is on the way gives the flow another port, several times. Without a Receipt our reflector takes
// the packets for another sender's until a statistics query arrives.
func TestLiveSessionOnAnotherNATPortLosesNothing(t *testing.T) {
	for _, size := range []int{DefaultSize(false), stampfmt.UnauthenticatedBytes} {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			t.Parallel()
			p, f, _, _, stop := behindFirewall(t, size, portAge)
			for range 3 {
				f.rebind()
				before, _, _ := p.counts()
				await.That(t, "replies to two queries", func() bool { now, _, _ := p.counts(); return now > before+110 })
			}
			s := p.session.Load()
			s.mu.Lock()
			v := s.snapshot()
			s.mu.Unlock()
			forward, reverse := v.directions[sample.Forward], v.directions[sample.Reverse]
			if v.RoundTripsLost+forward.Lost.Value+reverse.Lost.Value+forward.Undecided.Value != 0 || v.Shared != ledger.SharedByNone {
				t.Errorf("%d round trips lost, %d forward, %d reverse, %d undecided, shared %v", v.RoundTripsLost, forward.Lost.Value, reverse.Lost.Value, forward.Undecided.Value, v.Shared)
			}
			t.Logf("%d restarts, discarded %v, sent %d %d received %d %d", v.Restarts, v.Discarded, forward.Sent.Value, reverse.Sent.Value, forward.Received.Value, reverse.Received.Value)
			stop()
		})
	}
}

// TestSessionAsksForAnotherSourcePort after a time without a packet of the peer in which this host ran and sent, once in that
// time, unless the configuration sets the port.
func TestSessionAsksForAnotherSourcePort(t *testing.T) {
	const second = time.Second
	silent := int((portAge+DefaultOptions().LossTimeout)/second) + 2
	for name, c := range map[string]struct {
		change  func(*Options)
		seconds int
		leap    time.Duration // by which the clock advances at once
		each    func(s *session, now time.Duration, second int)
		want    int
	}{
		"silent":                    {seconds: silent, want: 1},
		"then after twice the time": {seconds: 3*silent - 4, want: 2},
		"and four times":            {seconds: 6 * silent, want: 3},
		"for an hour":               {seconds: 3600, want: 40},
		"not long enough":           {seconds: silent - 5},
		"a packet of the peer meanwhile": {seconds: 5 * silent, want: 3, each: func(s *session, now time.Duration, at int) {
			if at == 2*silent {
				s.account.Refuse(ledger.DiscardNoKey, now)
			}
		}},
		"two of three long intervals":      {seconds: 24, change: func(o *Options) { o.Interval = 10 * second }, want: 1},
		"local_port":                       {seconds: silent, change: func(o *Options) { o.LocalPort = 5000 }},
		"a long interval":                  {seconds: silent, change: func(o *Options) { o.Interval = time.Minute }},
		"a host that did not run":          {seconds: silent - 3, leap: time.Hour},
		"a host that refuses":              {seconds: silent, each: func(s *session, now time.Duration, _ int) { s.unsent = lastError{net.ErrClosed, now, calm} }},
		"packets of the peer, not replies": {seconds: silent, each: func(s *session, now time.Duration, _ int) { s.account.Refuse(ledger.DiscardNoKey, now) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSessionFixture(t, time.Millisecond, c.change)
			s.target = targetOf(t)
			asked, now := 0, s.portSince
			for i := range c.seconds {
				if now += second; i == c.seconds/2 {
					now += c.leap
				}
				if c.each != nil {
					c.each(s.session, now, i)
				}
				s.account.Tick(now, now)
				if s.report(now, portAge) {
					asked++
				}
			}
			if asked != c.want {
				t.Errorf("asked %d times for another port in %d s, want %d", asked, c.seconds, c.want)
			}
		})
	}
}

func targetOf(t *testing.T) *target.Target {
	t.Helper()
	o := DefaultOptions()
	made, err := target.New(&probe.Target{Path: "p", Probe: "stamp", Peer: "192.0.2.1"}, stampfmt.Port, &o.Options, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return made
}
