package stamp

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/reflector"
	"oneway.example/exporter/sample"
	wire "oneway.example/exporter/wire/stamp"
)

// proxy is a path between a prober and a reflector that delays and loses as it is told, and
// logs what it did: the truth.
type proxy struct {
	addr string
	// carry says what becomes of a packet that came at a time since the start: for how
	// long it is held, or that it is lost. nil: it goes on at once.
	carry func(d sample.Direction, at time.Duration, p []byte) (hold time.Duration, lost bool)

	near, far *net.UDPConn
	start     time.Time
	ways      [2]way

	mu     sync.Mutex
	client netip.AddrPort
	log    [2][]passage
}

// passage is what became of one test packet.
type passage struct {
	seq   uint32
	delay time.Duration
	lost  bool
}

// way is the queue of one direction: first in, first out.
type way struct {
	queue chan held
}

type held struct {
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
	far, err := net.ResolveUDPAddr("udp4", to)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		carry: carry, start: time.Now(),
		near: open(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})),
		far:  open(net.DialUDP("udp4", nil, far)),
	}
	p.addr = p.near.LocalAddr().String()
	var running sync.WaitGroup
	for d := range p.ways {
		p.ways[d].queue = make(chan held, 10_000)
		running.Go(func() { p.deliver(sample.Direction(d)) })
	}
	running.Go(p.fromNear)
	running.Go(p.fromFar)
	t.Cleanup(func() {
		p.near.Close()
		p.far.Close()
		running.Wait()
	})
	return p
}

func (p *proxy) fromNear() {
	defer close(p.ways[sample.Forward].queue)
	b := make([]byte, 1<<16)
	for {
		n, from, err := p.near.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.client = from
		p.mu.Unlock()
		p.enter(sample.Forward, b[:n])
	}
}

func (p *proxy) fromFar() {
	defer close(p.ways[sample.Reverse].queue)
	b := make([]byte, 1<<16)
	for {
		n, err := p.far.Read(b)
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
		p.note(d, payload, 0, true)
		return
	}
	p.ways[d].queue <- held{append([]byte(nil), payload...), now, now.Add(hold)}
}

func (p *proxy) deliver(d sample.Direction) {
	for h := range p.ways[d].queue {
		time.Sleep(time.Until(h.until)) // this is the path's delay, not a test that waits
		p.note(d, h.payload, time.Since(h.came), false)
		if d == sample.Forward {
			_, _ = p.far.Write(h.payload)
			continue
		}
		p.mu.Lock()
		to := p.client
		p.mu.Unlock()
		_, _ = p.near.WriteToUDPAddrPort(h.payload, to)
	}
}

// note logs a test packet or its answer; queries are none.
func (p *proxy) note(d sample.Direction, payload []byte, delay time.Duration, lost bool) {
	if isQuery(payload) {
		return
	}
	var seq uint32
	if d == sample.Forward {
		s, _ := wire.ParseSender(payload)
		seq = s.Seq
	} else {
		r, _ := wire.ParseReflector(payload)
		seq = r.SenderSeq
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log[d] = append(p.log[d], passage{seq, delay, lost})
}

// truth counts one direction: packets lost or slower than the waiting time, the others, and
// those so near to it that the stamps, taken elsewhere, may tell otherwise.
func (p *proxy) truth(d sample.Direction, wait time.Duration) (received, lost, near uint64) {
	const apart = 10 * time.Millisecond
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.log[d] {
		switch {
		case l.lost, l.delay > wait:
			lost++
		default:
			received++
		}
		if !l.lost && (l.delay-wait).Abs() < apart {
			near++
		}
	}
	return received, lost, near
}

// between checks one direction of a report against the proxy's log.
func (p *proxy) check(t *testing.T, r Report, wait time.Duration) {
	t.Helper()
	for d, got := range [2]DirectionReport{r.Forward, r.Reverse} {
		received, lost, near := p.truth(sample.Direction(d), wait)
		if got.Lost == nil || got.Received == nil {
			t.Fatalf("%v: losses are not told: %s", sample.Direction(d), asJSON(t, got))
		}
		if apart := max(*got.Lost, lost) - min(*got.Lost, lost); apart > near {
			t.Errorf("%v: %d lost, truly %d (%d of them within 10 ms of the waiting time)", sample.Direction(d), *got.Lost, lost, near)
		}
		if apart := max(*got.Received, received) - min(*got.Received, received); apart > near {
			t.Errorf("%v: %d received, truly %d (%d within 10 ms of the waiting time)", sample.Direction(d), *got.Received, received, near)
		}
		if *got.Sent != *got.Received+*got.Lost+*got.InFlight {
			t.Errorf("%v: %d sent, %d received, %d lost, %d in flight", sample.Direction(d), *got.Sent, *got.Received, *got.Lost, *got.InFlight)
		}
	}
}

// TestPacketThatTakesLongerThanTheWaitingTimeIsLost: the path stalls for more than the
// waiting time and then delivers everything, in order, so that no window misses a number.
func TestPacketThatTakesLongerThanTheWaitingTimeIsLost(t *testing.T) {
	const wait, stall = 150 * time.Millisecond, 400 * time.Millisecond
	for _, dir := range sample.Directions() {
		b := newBed(t, reflector.Options{})
		p := newProxy(t, b.peer, func(d sample.Direction, at time.Duration, _ []byte) (time.Duration, bool) {
			if from := 300 * time.Millisecond; d == dir && at > from && at < from+stall {
				return from + stall - at, false
			}
			return 0, false
		})
		o := quick()
		o.Interval, o.LossTimeout = 5*time.Millisecond, wait
		r := b.to(p.addr).measure(t, o, 200)
		p.check(t, r, wait)
		stalled := []DirectionReport{r.Forward, r.Reverse}[dir]
		if *stalled.Lost < 30 || *stalled.Late < *stalled.Lost-5 {
			t.Errorf("%v: %d lost and %d late of some 50 that took longer than %v", dir, *stalled.Lost, *stalled.Late, wait)
		}
		if stalled.Delay == nil || stalled.Delay.P50 == nil || stalled.Delay.P95 != nil || *stalled.Delay.Max > wait.Seconds() {
			t.Errorf("%v: a quarter of the delays is infinite: %s", dir, asJSON(t, stalled))
		}
	}
}

// TestBothDirectionsTogetherMayTakeLongerThanTheWaitingTime: neither has lost a packet.
func TestBothDirectionsTogetherMayTakeLongerThanTheWaitingTime(t *testing.T) {
	const wait, each = 400 * time.Millisecond, 250 * time.Millisecond
	b := newBed(t, reflector.Options{})
	p := newProxy(t, b.peer, func(sample.Direction, time.Duration, []byte) (time.Duration, bool) { return each, false })
	o := quick()
	o.Interval, o.LossTimeout = 5*time.Millisecond, wait
	r := b.to(p.addr).measure(t, o, 100)
	p.check(t, r, wait)
	if r.RoundTrip.Lost != 100 || r.RoundTrip.Received != 0 || r.RoundTrip.Time != nil {
		t.Errorf("round trips of 500 ms: %s", asJSON(t, r.RoundTrip))
	}
	for _, d := range []DirectionReport{r.Forward, r.Reverse} {
		if d.Delay == nil || d.Delay.P50 == nil || *d.Delay.P50 < each.Seconds() || *d.Delay.P50 > wait.Seconds() {
			t.Errorf("delays of 250 ms are valid: %s", asJSON(t, d))
		}
	}
}

// TestLossOfTheAnswersSpoilsNoForwardQuantile.
func TestLossOfTheAnswersSpoilsNoForwardQuantile(t *testing.T) {
	b := newBed(t, reflector.Options{})
	p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
		if isQuery(payload) {
			return 0, false
		}
		if d == sample.Forward {
			s, _ := wire.ParseSender(payload)
			return 0, s.Seq%30 == 7 // 3.3 %
		}
		r, _ := wire.ParseReflector(payload)
		return 0, r.SenderSeq%5 < 3 // 60 %
	})
	o := quick()
	o.LossTimeout = 200 * time.Millisecond
	r := b.to(p.addr).measure(t, o, 600)
	p.check(t, r, o.LossTimeout)
	if f := r.Forward.Delay; f == nil || f.P50 == nil || f.P95 == nil || f.P99 != nil {
		t.Errorf("3.3 %% lost forward, 60 %% of the answers: %s", asJSON(t, r.Forward))
	}
	if v := r.Reverse.Delay; v == nil || v.P50 != nil {
		t.Errorf("60 %% of the answers lost: %s", asJSON(t, r.Reverse))
	}
}
