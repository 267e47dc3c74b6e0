package stamp

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/reflector"
)

// proxy is a path between a prober and a reflector that delays and loses packets as configured, and logs the true
// outcome of each.
type proxy struct {
	addr string
	// carry returns how long a packet that arrived at a time since the start is held, or that it is lost. nil: it
	// is forwarded at once.
	carry func(d sample.Direction, at time.Duration, p []byte) (hold time.Duration, lost bool)

	local, remote *net.UDPConn
	start         time.Time
	ways          [2]way

	mu     sync.Mutex
	client netip.AddrPort
	log    [2][]passage
}

// passage is what happened to one test packet; its delay, from the timestamp in the packet until it was forwarded,
// is between least and most.
type passage struct {
	least, most time.Duration
	lost        bool
}

// way is the queue of one direction: first in, first out.
type way struct {
	queue chan txUncertain
}

type txUncertain struct {
	payload []byte
	came    time.Time
	until   time.Time
}

func newProxy(t *testing.T, to string, carry func(sample.Direction, time.Duration, []byte) (time.Duration, bool)) *proxy {
	t.Helper()
	open := func(c *net.UDPConn, err error) *net.UDPConn {
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	remote, err := net.ResolveUDPAddr("udp4", to)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		carry: carry, start: time.Now(),
		local:  open(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})),
		remote: open(net.DialUDP("udp4", nil, remote)),
	}
	p.addr = p.local.LocalAddr().String()
	var running sync.WaitGroup
	for d := range p.ways {
		p.ways[d].queue = make(chan txUncertain, 10_000)
		running.Go(func() { p.deliver(sample.Direction(d)) })
	}
	running.Go(p.fromNear)
	running.Go(p.fromRemote)
	t.Cleanup(func() {
		p.local.Close()
		p.remote.Close()
		running.Wait()
	})
	return p
}

func (p *proxy) fromNear() {
	defer close(p.ways[sample.Forward].queue)
	b := make([]byte, 1<<16)
	for {
		n, from, err := p.local.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.client = from
		p.mu.Unlock()
		p.enter(sample.Forward, b[:n])
	}
}

func (p *proxy) fromRemote() {
	defer close(p.ways[sample.Reverse].queue)
	b := make([]byte, 1<<16)
	for {
		n, err := p.remote.Read(b)
		if err != nil {
			return
		}
		p.enter(sample.Reverse, b[:n])
	}
}

func (p *proxy) enter(d sample.Direction, payload []byte) {
	now := time.Now()
	hold, lost := p.carry(d, now.Sub(p.start), payload)
	if lost {
		p.note(d, payload, passage{lost: true})
		return
	}
	p.ways[d].queue <- txUncertain{append([]byte(nil), payload...), now, now.Add(hold)}
}

func (p *proxy) deliver(d sample.Direction) {
	for h := range p.ways[d].queue {
		time.Sleep(time.Until(h.until)) // this is the path's delay, not a test that waits
		least := time.Since(h.came)
		if d == sample.Forward {
			_, _ = p.remote.Write(h.payload)
		} else {
			p.mu.Lock()
			to := p.client
			p.mu.Unlock()
			_, _ = p.local.WriteToUDPAddrPort(h.payload, to)
		}
		p.note(d, h.payload, passage{least: least, most: instant.Now().Sub(stamped(d, h.payload))})
	}
}

// stamped is the sender's own timestamp in a packet of either direction.
func stamped(d sample.Direction, payload []byte) instant.Time {
	now := instant.Now()
	if d == sample.Forward {
		s, _ := stampfmt.ParseSender(payload)
		return timefmt.NTP.Decode(s.T1, 0, now)
	}
	r, _ := stampfmt.ParseReflector(payload)
	return timefmt.NTP.Decode(r.T3, 0, now)
}

// note logs a test packet or its reply, but no query.
func (p *proxy) note(d sample.Direction, payload []byte, what passage) {
	if isStatsQuery(payload) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log[d] = append(p.log[d], what)
}

// truth counts one direction: packets lost or slower than the loss timeout, the others, and those so close to it
// that the timestamps, taken elsewhere, may differ.
func (p *proxy) truth(d sample.Direction, wait time.Duration) (received, lost, local uint64) {
	const apart = 2 * time.Millisecond
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.log[d] {
		switch {
		case l.lost, l.least > wait+apart:
			lost++
		case l.most > wait-apart:
			local++
			fallthrough
		default:
			received++
		}
	}
	return received, lost, local
}

// check compares a report with the proxy's log.
func (p *proxy) check(t *testing.T, r Report, wait time.Duration) {
	t.Helper()
	for d, got := range [2]DirectionReport{r.Forward, r.Reverse} {
		received, lost, local := p.truth(sample.Direction(d), wait)
		if got.Lost == nil || got.Received == nil {
			t.Fatalf("%v: losses are unknown: %s", sample.Direction(d), asJSON(t, got))
		}
		if apart := max(*got.Lost, lost) - min(*got.Lost, lost); apart > local {
			t.Errorf("%v: %d lost, want %d (up to %d more)", sample.Direction(d), *got.Lost, lost, local)
		}
		if apart := max(*got.Received, received) - min(*got.Received, received); apart > local {
			t.Errorf("%v: %d received, want %d (up to %d fewer)", sample.Direction(d), *got.Received, received, local)
		}
		if *got.Sent != *got.Received+*got.Lost+*got.HostDropped+*got.Outstanding {
			t.Errorf("%v: %d sent, %d received, %d lost, %d outstanding", sample.Direction(d), *got.Sent, *got.Received, *got.Lost, *got.Outstanding)
		}
	}
}

// numberOf is the number of a test packet or of the one that a reply refers to.
func numberOf(d sample.Direction, payload []byte) uint32 {
	if d == sample.Forward {
		s, _ := stampfmt.ParseSender(payload)
		return s.Seq
	}
	r, _ := stampfmt.ParseReflector(payload)
	return r.SenderSeq
}

// TestPacketThatTakesLongerThanTheWaitingTimeIsLost: the path stalls for more than the loss timeout and then
// delivers everything in order, so that no window misses a number.
func TestPacketThatTakesLongerThanTheWaitingTimeIsLost(t *testing.T) {
	const wait, stall = 150 * time.Millisecond, 400 * time.Millisecond
	for _, dir := range sample.Directions() {
		b := newTestbed(t, reflector.Options{})
		var until [2]time.Duration // of each direction's own goroutine
		p := newProxy(t, b.peer, func(d sample.Direction, at time.Duration, payload []byte) (time.Duration, bool) {
			if d == dir && until[d] == 0 && !isStatsQuery(payload) && numberOf(d, payload) >= 60 {
				until[d] = at + stall
			}
			return max(0, until[d]-at), false
		})
		o := quick()
		o.Interval, o.LossTimeout = 5*time.Millisecond, wait
		r := b.to(p.addr).measure(t, o, 200)
		p.check(t, r, wait)
		stalled := []DirectionReport{r.Forward, r.Reverse}[dir]
		if *stalled.Lost == 0 || *stalled.Late != *stalled.Lost {
			t.Errorf("%v: %d lost and %d late of those that took longer than %v", dir, *stalled.Lost, *stalled.Late, wait)
		}
		// A delay within the error bound of the loss timeout may be in time.
		if infinite := *stalled.Lost > 10; stalled.Delay == nil || (stalled.Delay.P95 == nil) != infinite || *stalled.Delay.Max > wait.Seconds()+*stalled.Delay.ErrorBound {
			t.Errorf("%v: %d of 200 delays are infinite: %s", dir, *stalled.Lost, asJSON(t, stalled))
		}
	}
}

// TestBothDirectionsTogetherMayTakeLongerThanTheWaitingTime: neither loses a packet.
func TestBothDirectionsTogetherMayTakeLongerThanTheWaitingTime(t *testing.T) {
	const wait, each = 400 * time.Millisecond, 250 * time.Millisecond
	b := newTestbed(t, reflector.Options{})
	p := newProxy(t, b.peer, func(sample.Direction, time.Duration, []byte) (time.Duration, bool) { return each, false })
	o := quick()
	o.Interval, o.LossTimeout = 5*time.Millisecond, wait
	r := b.to(p.addr).measure(t, o, 100)
	p.check(t, r, wait)
	if r.RoundTrip.Lost != 100 || r.RoundTrip.Received != 0 || r.RoundTrip.Time != nil {
		t.Errorf("round trips of 500 ms, want lost: %s", asJSON(t, r.RoundTrip))
	}
	if shown := r.Printed(); len(shown.Table.Rows) == 0 || !slices.ContainsFunc(shown.Notes, func(n string) bool { return strings.Contains(n, "after the waiting time") }) {
		t.Errorf("a terminal shows %+v", shown)
	}
	for _, d := range []DirectionReport{r.Forward, r.Reverse} {
		if d.Delay == nil || d.Delay.P50 == nil || *d.Delay.P50 < each.Seconds() || *d.Delay.P50 > wait.Seconds() {
			t.Errorf("delays of 250 ms, want valid: %s", asJSON(t, d))
		}
	}
}

// TestRepliesToCopiesHaveADelayInReverse: the path duplicates a tenth of the requests. Each copy has a reply, which counts in reverse.
func TestRepliesToCopiesHaveADelayInReverse(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	const n, each = 300, 10
	made := make(chan *proxy, 1)
	p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
		if s, err := stampfmt.ParseSender(payload); d == sample.Forward && err == nil && !isStatsQuery(payload) && s.Seq%each == 3 {
			p := <-made
			_, _ = p.remote.Write(payload)
			made <- p
		}
		return 0, false
	})
	made <- p
	o := quick()
	o.LossTimeout = time.Second
	r := b.to(p.addr).measure(t, o, n)
	if f, v := r.Forward, r.Reverse; *f.Duplicated != n/each || *f.Received != n || *v.Received != n+n/each || f.UnknownDelays+v.UnknownDelays > 0 || v.Delay == nil || v.Delay.P95 == nil || v.PDV == nil {
		t.Errorf("forward %s\nreverse %s", asJSON(t, f), asJSON(t, v))
	}
}

// TestLossOfTheRepliesSpoilsNoForwardLoss: lost replies do not change the forward loss; the forward delays that they had are
// unknown, and counted.
func TestLossOfTheRepliesSpoilsNoForwardLoss(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
		if isStatsQuery(payload) {
			return 0, false
		}
		if d == sample.Forward {
			s, _ := stampfmt.ParseSender(payload)
			return 0, s.Seq%30 == 7 // 3.3 %
		}
		r, _ := stampfmt.ParseReflector(payload)
		return 0, r.SenderSeq%5 < 3 // 60 %
	})
	o := quick()
	o.LossTimeout = 200 * time.Millisecond
	r := b.to(p.addr).measure(t, o, 600)
	p.check(t, r, o.LossTimeout)
	if f := r.Forward; *f.Lost != 20 || f.UnknownDelays < 300 || f.Delay == nil || f.Delay.Min == nil || f.Delay.P50 != nil {
		t.Errorf("3.3 %% lost forward, 60 %% of the replies: %s", asJSON(t, f))
	}
	if v := r.Reverse.Delay; v == nil || v.P50 != nil {
		t.Errorf("60 %% of the replies lost: %s", asJSON(t, r.Reverse))
	}
}
