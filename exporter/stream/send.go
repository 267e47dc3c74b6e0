package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/tstamp"
	"oneway.example/exporter/wire/load"
)

// Times of sending.
const (
	// tick is the shortest sleep: what comes due sooner waits for it. A higher rate
	// leaves in groups that are a tick apart.
	tick = 250 * time.Microsecond
	// retry is when a packet is offered again for which the kernel had no room.
	retry = 500 * time.Microsecond
	// patience is how much later than its time, or than it was first offered in a
	// segment without intervals, a packet is still offered.
	patience         = 100 * time.Millisecond
	patienceUnpaced  = time.Second
	progressEvery    = 100 * time.Millisecond
	stampPatience    = tstamp.StampWait + 500*time.Millisecond
	stampPatienceEnd = 200 * time.Millisecond // when the run has been ended
)

// Sizes of what is prepared and offered in one go.
const (
	batchBytes   = 1 << 20
	batchMost    = 256
	batchFewest  = 16
	perWake      = 1024 // packets sent before the context is looked at
	stampsAtOnce = 256
)

// ErrFamily: an address is not of the socket's family.
var ErrFamily = errors.New("stream: address of another family than the socket's")

// due is when a packet is to leave; one of an unpaced segment when it is prepared.
type due struct {
	at      monotonic
	unpaced bool
}

// sending is one Send under way. Only the pacer's goroutine uses what has no other
// guard.
type sending struct {
	session *Session
	plan    Plan
	to      netip.AddrPort
	source  netip.Addr
	header  load.Header
	token   uint32
	cancel  context.CancelFunc

	cursor cursor
	begin  monotonic
	out    []tstamp.Out
	rooms  [][]byte // a payload each
	dues   []due
	from   int // out[from:] is prepared and not sent
	stamps []tstamp.TxStamp
	wall   instant.Time // the system clock at ...
	wallAt monotonic    // ... this time
	// refused is when out[from] was refused for want of room first; zero: it was not.
	refused monotonic
	result  Sent
	err     error

	// packets is the whole plan's, prepared of them have been made. A packet's stamp is
	// written before it is offered, and then by who finds the kernel's, under the
	// endpoint's mu.
	packets  []SentPacket
	prepared int
	stamped  atomic.Int64
	changed  chan struct{} // a stamp has come

	sentPackets, sentBytes atomic.Int64
	firstDue               atomic.Int64
}

// Send sends the plan's packets, each at its time, and returns when all have left, and
// their stamps have come or are given up. progress may be nil; it is called from another
// goroutine ten times a second, and not after Send has returned.
//
// The schedule is absolute on the monotonic clock: a packet that is late shifts none
// after it. What is due within a quarter of a millisecond leaves together. A packet for
// which the kernel has no room (ENOBUFS, EAGAIN) is offered again for 100 ms; one of an
// unpaced segment for a second. One that is not taken is in Sent.Refused.
//
// When ctx ends or the session leaves, Send returns what was sent so far, and no error.
// An error means that nothing more can be sent: the Endpoint was closed.
func (s *Session) Send(ctx context.Context, transfer uint16, to netip.AddrPort, p Plan, progress func(Progress)) (*Sent, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	e := s.endpoint
	if to.Addr().Unmap().Is6() != e.LocalAddr().Addr().Unmap().Is6() || !to.IsValid() || to.Port() == 0 {
		return nil, fmt.Errorf("%w: %v", ErrFamily, to)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x := newSending(s, transfer, to, p, cancel)
	if !x.register() {
		return nil, ErrLeft
	}
	defer x.unregister()
	if err := x.run(ctx, progress); err != nil {
		return nil, err
	}
	if x.err == nil {
		x.await(ctx)
	}
	return x.conclude(), x.err
}

func newSending(s *Session, transfer uint16, to netip.AddrPort, p Plan, cancel context.CancelFunc) *sending {
	largest := 0
	for _, g := range p.Segments {
		largest = max(largest, g.PayloadBytes)
	}
	n := min(max(batchBytes/largest, batchFewest), batchMost, p.Packets())
	x := &sending{
		session: s, plan: p, to: to, source: s.sourceFor(to), cancel: cancel,
		header: load.Header{Type: load.Data, Transfer: transfer, Session: s.id},
		out:    make([]tstamp.Out, 0, n), dues: make([]due, 0, n), rooms: make([][]byte, n),
		stamps:  make([]tstamp.TxStamp, 0, stampsAtOnce),
		packets: make([]SentPacket, p.Packets()), changed: make(chan struct{}, 1),
	}
	all := make([]byte, n*largest)
	for i := range x.rooms {
		x.rooms[i] = all[i*largest : (i+1)*largest : (i+1)*largest]
	}
	return x
}

// register makes the stream's stamps find it.
func (x *sending) register() bool {
	e := x.session.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[x.session.id] != x.session {
		return false
	}
	for {
		e.token++
		if e.token != noStamp && e.sending[e.token] == nil {
			break
		}
	}
	x.token = e.token
	e.sending[x.token] = x
	return true
}

func (x *sending) unregister() {
	e := x.session.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sending, x.token)
}

// run paces the packets until all are sent or ctx ends.
func (x *sending) run(ctx context.Context, progress func(Progress)) error {
	pacer, err := sched.NewPacer()
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	ctx, finished := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer finished()
	if progress != nil {
		watcher.Go(func() { x.report(ctx, progress) })
	}
	x.begin = sched.Now()
	x.cursor = newCursor(x.plan, x.begin)
	x.firstDue.Store(int64(x.cursor.due()))
	pacer.Add(sched.TaskFunc(func(_, now time.Duration) time.Duration {
		next := x.fire(now)
		if next == sched.Stop {
			finished()
		}
		return next
	}), x.cursor.due())
	if err := pacer.Run(ctx); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

// report tells how far it has come.
func (x *sending) report(ctx context.Context, progress func(Progress)) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			progress(x.progress())
			return
		case <-ticker.C:
			progress(x.progress())
		}
	}
}

func (x *sending) progress() Progress {
	return Progress{
		Packets: int(x.sentPackets.Load()), Bytes: x.sentBytes.Load(),
		Elapsed: max(0, sched.Now()-time.Duration(x.firstDue.Load())),
	}
}

// fire sends what is due, and returns when to be called again.
func (x *sending) fire(now monotonic) (next monotonic) {
	x.readClock()
	woken := now
	for budget := perWake; budget > 0; {
		if x.from == len(x.out) {
			x.prepare(now)
		}
		if x.from == len(x.out) {
			break
		}
		n, wait := x.offer()
		if x.err != nil {
			return sched.Stop
		}
		x.collect()
		if wait {
			return sched.Now() + retry
		}
		budget -= n
		now = sched.Now()
	}
	switch {
	case x.from < len(x.out):
		return max(1, now) // at once, but the context is looked at
	case x.cursor.done():
		return sched.Stop
	}
	due := x.cursor.due()
	if due <= now {
		return max(1, now)
	}
	return max(due, woken+tick)
}

// readClock reads both clocks together, as closely as the host lets us.
func (x *sending) readClock() {
	best := time.Duration(1<<63 - 1)
	for range 3 {
		before := sched.Now()
		wall := instant.Now()
		after := sched.Now()
		if after-before < best {
			best = after - before
			x.wall, x.wallAt = wall, before+best/2
		}
		if best < time.Microsecond {
			return
		}
	}
}

// wallOf is the system clock's reading at a time of the monotonic one.
func (x *sending) wallOf(t monotonic) instant.Time { return x.wall.Add(t - x.wallAt) }

// prepare makes a batch of the packets that are due now.
func (x *sending) prepare(now monotonic) {
	x.out, x.dues, x.from = x.out[:0], x.dues[:0], 0
	for len(x.out) < len(x.rooms) && !x.cursor.done() && x.cursor.due() <= now {
		d := due{at: x.cursor.due(), unpaced: x.cursor.unpaced()}
		if d.unpaced {
			d.at = now
		}
		seq := x.prepared
		b := x.rooms[len(x.out)][:x.cursor.payloadBytes()]
		x.header.Seq = uint32(seq)
		x.header.Fill(b)
		x.out = append(x.out, tstamp.Out{
			Payload: b, Peer: x.to, Source: x.source, DSCP: x.plan.DSCP, Cookie: uint64(x.token)<<32 | uint64(seq),
		})
		x.dues = append(x.dues, d)
		// Until the kernel's stamp comes, the clock's reading stands in.
		x.packets[seq] = SentPacket{
			Due: x.wallOf(d.at), Stamp: sample.Stamp{At: x.wallOf(now), Origin: sample.User},
		}
		x.prepared++
		x.cursor.advance(now)
	}
}

// offer gives the kernel what is prepared, and tells how many packets are settled, and
// whether it has no room for the next.
func (x *sending) offer() (n int, wait bool) {
	sent, err := x.session.endpoint.conn.Send(x.out[x.from:])
	now := sched.Now()
	x.settle(sent, now)
	var errno syscall.Errno
	switch {
	case err == nil:
		return sent, false
	case errors.Is(err, net.ErrClosed):
		x.err = fmt.Errorf("stream: %w", err)
		return sent, false
	case errors.As(err, &errno) && (errno == syscall.EAGAIN || errno == syscall.ENOBUFS) && !x.tooLate(now):
		return sent, true
	}
	x.refuse()
	return sent + 1, false
}

// settle notes that n packets have been taken.
func (x *sending) settle(n int, now monotonic) {
	if n == 0 {
		return
	}
	bytes := 0
	for i := x.from; i < x.from+n; i++ {
		bytes += len(x.out[i].Payload)
		if now-x.dues[i].at > LateAfter {
			x.result.Late++
		}
	}
	x.from += n
	x.refused = 0
	x.sentPackets.Add(int64(n))
	x.sentBytes.Add(int64(bytes))
}

// tooLate: the next packet has been refused for want of room for long enough.
func (x *sending) tooLate(now monotonic) bool {
	if x.refused == 0 {
		x.refused = now
	}
	if x.dues[x.from].unpaced {
		return now-x.refused > patienceUnpaced
	}
	return now-x.dues[x.from].at > patience
}

// refuse gives the next packet up: it never left.
func (x *sending) refuse() {
	x.result.Refused++
	seq := uint32(x.out[x.from].Cookie)
	x.packets[seq].Stamp = sample.Stamp{}
	x.from++
	x.refused = 0
}

// collect takes the stamps that are there, when many are due: their queue is bounded, and
// the receiving goroutine may not be running.
func (x *sending) collect() {
	if x.sentPackets.Load()-x.stamped.Load() < stampsAtOnce {
		return
	}
	for {
		x.stamps = x.session.endpoint.conn.Stamps(x.stamps[:0])
		x.session.endpoint.stamped(x.stamps)
		if len(x.stamps) < cap(x.stamps) {
			return
		}
	}
}

// stamped hands transmit stamps to their streams.
func (e *Endpoint) stamped(all []tstamp.TxStamp) {
	if len(all) == 0 {
		return
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	var x *sending
	for i := range all {
		token, seq := uint32(all[i].Cookie>>32), uint32(all[i].Cookie)
		if x == nil || x.token != token {
			x = e.sending[token]
		}
		if x != nil && int(seq) < len(x.packets) {
			x.packets[seq].Stamp = all[i].Stamp
			x.stamped.Add(1)
			x.signal()
		}
	}
}

func (x *sending) signal() {
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// await waits for the stamps that are still to come.
func (x *sending) await(ctx context.Context) {
	timer := time.NewTimer(stampPatience)
	defer timer.Stop()
	ended := ctx.Done()
	for x.stamped.Load() < x.sentPackets.Load() {
		select {
		case <-x.changed:
		case <-timer.C:
			return
		case <-ended:
			ended = nil
			timer.Reset(stampPatienceEnd)
		}
	}
}

// conclude is the result. No stamp is written any more afterwards.
func (x *sending) conclude() *Sent {
	x.unregister()
	x.result.Planned = len(x.packets)
	tried := x.prepared - (len(x.out) - x.from) // the rest was prepared only
	x.result.Packets = x.packets[:tried]
	for i := range x.result.Packets {
		at := x.result.Packets[i].Stamp.At
		if at == 0 {
			continue
		}
		if x.result.Begin == 0 {
			x.result.Begin = at
		}
		x.result.End = at
	}
	return &x.result
}
