package heavy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/control"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/stream"
	"oneway.example/exporter/wait"
)

// carrier is the real Carrier: a control connection and a UDP socket.
type carrier struct {
	client  *control.Client
	session *stream.Session
	remote  netip.AddrPort
	clock   clock.Monitor
	drain   time.Duration
	last    atomic.Uint32 // transfer

	mu      sync.Mutex
	running int           // transfers
	heard   time.Duration // when the responder last heard of our address, by sched.Now
}

// proofAge is after how long without a packet from here the address is proved anew: a NAT keeps its
// mapping for two minutes at the least (RFC 4787 REQ-5), and a responder believes a
// proof for as long.
const proofAge = time.Minute

// enter begins a transfer, with an address that is proved.
func (c *carrier) enter(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == 0 && sched.Now()-c.heard > proofAge {
		cookie, err := greet(ctx, c.session, c.remote)
		if err != nil {
			return err
		}
		if err := c.client.Prove(ctx, cookie); err != nil {
			return &worded{err}
		}
	}
	c.running++
	return nil
}

// leave ends it; test packets, or hellos, have just left.
func (c *carrier) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	c.heard = sched.Now()
}

// Carry is Carrier.
func (c *carrier) Carry(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(Progress)) (*Carried, error) {
	return c.carry(ctx, d, p, idle, progress, nil)
}

// Feedback is Steerer.
func (c *carrier) Feedback() bool { return c.client.Feedback() }

// Steer is Steerer.
func (c *carrier) Steer(ctx context.Context, d sample.Direction, p stream.Plan, progress func(Progress), steer stream.Steer) (*Carried, error) {
	return c.carry(ctx, d, p, 0, progress, steer)
}

func (c *carrier) carry(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(Progress), steer stream.Steer) (*Carried, error) {
	n := c.last.Add(1)
	if n > math.MaxUint16 {
		return nil, fmt.Errorf("heavy: more than %d transfers in a session", math.MaxUint16)
	}
	if err := c.enter(ctx); err != nil {
		return nil, fmt.Errorf("%s transfer: %w", d, err)
	}
	defer c.leave()
	t := control.Transfer{ID: uint16(n), Direction: d, Plan: p, Idle: c.patience(idle)}
	w := &watchman{clock: c.clock, tell: progress, heard: c.client.Heard}
	var carried *Carried
	var err error
	if d == sample.Forward {
		carried, err = c.forward(ctx, t, w, steer)
	} else {
		carried, err = c.reverse(ctx, t, w, steer)
	}
	if carried != nil {
		carried.Near = w.clocks()
	}
	if ctx.Err() != nil {
		return carried, context.Cause(ctx)
	}
	return carried, err
}

func (c *carrier) forward(ctx context.Context, t control.Transfer, w *watchman, steer stream.Steer) (*Carried, error) {
	w.begin()
	started, err := c.client.Start(ctx, t)
	if err != nil {
		return nil, failed(sample.Forward, err)
	}
	out := &Carried{Far: Clocks{Before: started.Clock}}
	if by := steer; by != nil {
		steer = func(st stream.Status) time.Duration {
			w.heard() // a report is a sign of life where the connection is silent
			return by(st)
		}
	}
	out.Sent, err = c.session.SendSteered(ctx, t.ID, c.remote, t.Plan, w.see, steer)
	if out.Sent != nil {
		out.Packets, out.PayloadBytes = moved(t.Plan, out.Sent)
	}
	if err != nil {
		return out, &Failure{Reason: ReasonSocket, Err: err}
	}
	if err := c.client.Sent(ctx, t.ID, leftHost(out.Sent)); err != nil {
		return out, failed(sample.Forward, err)
	}
	finished, records, err := c.client.Wait(ctx, t.ID)
	if err != nil {
		return out, failed(sample.Forward, err)
	}
	out.Far.After, out.Cut = finished.Clock, finished.Error
	if finished.Received == nil {
		return out, failed(sample.Forward, errors.New("the responder does not say what it received"))
	}
	out.Received = finished.Received
	if out.Received.Packets, err = stream.ParseReceived(records); err != nil {
		return out, failed(sample.Forward, err)
	}
	return out, nil
}

func (c *carrier) reverse(ctx context.Context, t control.Transfer, w *watchman, steer stream.Steer) (*Carried, error) {
	reception, err := c.session.Expect(t.ID, t.Plan)
	if err != nil {
		return nil, &Failure{Reason: ReasonSocket, Err: err}
	}
	// Whatever happens, the reception is finished: nobody else ends it.
	receiving, enough := context.WithCancel(ctx)
	defer enough()
	var finishing sync.WaitGroup
	out := &Carried{}
	finishing.Go(func() {
		out.Received = reception.Finish(receiving, -1, t.Idle)
		enough()
	})
	finishing.Go(func() { c.session.KeepAlive(receiving, c.remote) })
	finishing.Go(func() { w.follow(receiving, reception) })
	if steer != nil {
		finishing.Go(func() {
			reception.Follow(receiving, func(st stream.Status) {
				// One that is lost is followed by the next.
				_ = c.session.Order(t.ID, c.remote, st.Serial, steer(st))
			})
		})
	}
	w.begin()
	err = c.request(ctx, t, reception, out)
	if err != nil {
		enough()
	}
	finishing.Wait()
	if out.Sent != nil {
		out.Packets, out.PayloadBytes = moved(t.Plan, out.Sent)
	} else { // what came is the least that was sent
		at := reception.Progress()
		out.Packets, out.PayloadBytes = at.Packets, at.Bytes
	}
	return out, err
}

// request has the responder send, and waits until it says that it has.
func (c *carrier) request(ctx context.Context, t control.Transfer, to *stream.Reception, out *Carried) error {
	started, err := c.client.Start(ctx, t)
	if err != nil {
		return failed(sample.Reverse, err)
	}
	out.Far.Before = started.Clock
	finished, records, err := c.client.Wait(ctx, t.ID)
	if err != nil {
		return failed(sample.Reverse, err)
	}
	out.Far.After, out.Cut = finished.Clock, finished.Error
	if finished.Sent == nil {
		return failed(sample.Reverse, errors.New("the responder does not say what it sent"))
	}
	sent := finished.Sent
	if sent.Packets, err = stream.ParseSent(records); err != nil {
		return failed(sample.Reverse, err)
	}
	out.Sent = sent
	to.SetSent(leftHost(sent))
	return nil
}

// patience is how long nothing may come until what has not come is lost: as configured,
// or less.
func (c *carrier) patience(idle time.Duration) time.Duration {
	if idle <= 0 {
		return c.drain
	}
	return min(c.drain, max(idle, control.MinIdle))
}

func failed(d sample.Direction, err error) error {
	return fmt.Errorf("%s transfer: %w", d, &worded{err})
}

// leftHost is how many packets the sender's kernel took: no others can come.
func leftHost(sent *stream.Sent) (n int) {
	for i := range sent.Packets {
		if sent.Packets[i].Stamp.Present() {
			n++
		}
	}
	return n
}

// moved is how many packets left the sender, and their UDP payload.
func moved(p stream.Plan, sent *stream.Sent) (packets int, payload int64) {
	i := 0
	for _, s := range p.Segments {
		for range min(s.Packets(), len(sent.Packets)-i) {
			if sent.Packets[i].Stamp.Present() {
				packets++
				payload += int64(s.PayloadBytes)
			}
			i++
		}
	}
	return packets, payload
}

// watchman looks at this host's clock, and passes progress on, while a transfer lasts.
type watchman struct {
	clock clock.Monitor
	tell  func(Progress)
	heard func() // is told that the responder's packets come

	mu      sync.Mutex
	before  control.Clock
	largest time.Duration
}

func (w *watchman) begin() {
	now := clockOf(w.clock, instant.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.largest = now, now.Bound
}

// see is told of progress some times a second.
func (w *watchman) see(p stream.Progress) {
	now := clockOf(w.clock, instant.Now())
	w.mu.Lock()
	w.largest = max(w.largest, now.Bound)
	w.mu.Unlock()
	if w.tell != nil {
		w.tell(Progress{Packets: p.Packets, Bytes: p.Bytes, Elapsed: p.Elapsed})
	}
}

// watchEvery is how often a reception is looked at.
const watchEvery = 200 * time.Millisecond

func (w *watchman) follow(ctx context.Context, r *stream.Reception) {
	for seen := 0; wait.For(ctx, watchEvery); {
		p := r.Progress()
		if p.Packets > seen {
			seen = p.Packets
			w.heard()
		}
		w.see(p)
	}
}

func (w *watchman) clocks() Clocks {
	after := clockOf(w.clock, instant.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	return Clocks{Before: w.before, After: after, Largest: max(w.largest, after.Bound)}
}
