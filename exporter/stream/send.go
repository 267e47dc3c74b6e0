package stream

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/instant"
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
	// timeout is how much later than its time, or than it was first offered in a
	// segment without intervals, a packet is still offered.
	timeout         = 100 * time.Millisecond
	timeoutUnpaced  = time.Second
	graceTime       = time.Second // and a tenth of the plan's duration: see Send
	progressEvery   = 100 * time.Millisecond
	stampTimeout    = tstamp.StampWait + 500*time.Millisecond
	stampTimeoutEnd = 200 * time.Millisecond // when the run has been ended
)

// Sizes of what is prepared and offered in one go.
const (
	batchBytes   = 1 << 20
	batchMost    = 256
	batchFewest  = 16
	perWake      = 1024 // sent before the context is looked at
	cutMost      = 64   // packets that the kernel cuts one into (UDP_MAX_SEGMENTS until Linux 6.9)
	stampsAtOnce = 256
)

// What Send refuses.
var (
	// ErrFamily: an address is not of the socket's family.
	ErrFamily = errors.New("stream: address of another family than the socket's")
	// ErrChecksum: a packet without UDP checksum over IPv6, where every receiver
	// drops it (RFC 8200 section 8.1).
	ErrChecksum = errors.New("stream: only IPv4 can do without a checksum")
)

// group is what one tstamp.Out holds: a packet, or several that the kernel is to cut apart.
type group struct {
	// due is when the first is to leave; in an unpaced segment, when it was prepared.
	due     monotonic
	unpaced bool
	first   int // number of the first
	packets int
}

// sending is one Send under way. Only the pacer's goroutine uses what has no other
// guard.
type sending struct {
	session    *Session
	plan       Plan
	to         netip.AddrPort
	source     netip.Addr
	header     load.Header
	token      uint32
	cancel     context.CancelFunc
	adjustRate *Adjusting // of a plan with feedback, else nil
	consent    Consent    // nil: none is asked for

	cursor cursor
	begin  monotonic
	end    monotonic // of what is paced, at the latest
	out    []tstamp.Out
	spaces [][]byte // for the payload of each
	groups []group  // of each
	from   int      // out[from:] is prepared and not sent
	most   int      // packets in a group
	manner tstamp.SendOptions
	stamps []tstamp.TxStamp
	wall   instant.Time // the system clock at ...
	wallAt monotonic    // ... this time
	// refused is when out[from] was refused for want of room first; zero: it was not.
	refused monotonic
	// gaveUp is when one was given up last; zero: none was of late.
	gaveUp monotonic
	result Sent
	err    error

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

// How says who is told of a stream that is sent, and who decides on it. The zero value: nobody.
type How struct {
	// Progress is called from another goroutine ten times a second, when all that is sent has been,
	// and not after Send has returned.
	Progress func(Progress)
	// AdjustRate is for a plan with feedback by this end's own decisions: it is asked with each report
	// of the receiver; nil: the orders of the other end count. Without a word for a second, or four
	// reports, the rate is halved, and each such time again.
	AdjustRate Adjuster
	// Consent: packets are sent while there is consent. Where there is none, what comes due is not
	// sent: such packets have no stamp, and are not counted as Refused. With consent again the plan
	// goes on where it is by then.
	Consent Consent
}

// Send sends the plan's packets, each at its time, and returns when all have left, and
// their stamps have come or are given up.
//
// The schedule is absolute on the monotonic clock: a packet that is late shifts none
// after it. What is due within a quarter of a millisecond leaves together. A packet for
// which the kernel has no room (ENOBUFS, EAGAIN) is offered again for 100 ms; one of an
// unpaced segment for a second. One that is not taken is in Sent.Refused.
//
// A host that does not keep up with the plan is late, packet by packet, and gives up a
// second and a tenth of the plan's duration after its end: the rest was not tried. A segment
// without intervals takes as long as it takes; give ctx an end.
//
// A plan that is Unstamped has the kernel cut large packets where it can, and tells the
// time at which each was handed over.
//
// A plan with feedback is steered by the orders of the other end; see How.Steer.
//
// When ctx ends or the session leaves, Send returns what was sent so far, and no error.
// An error means that nothing more can be sent: the Endpoint was closed.
func (s *Session) Send(ctx context.Context, transfer uint16, to netip.AddrPort, p Plan, how How) (*Sent, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	e := s.endpoint
	if to.Addr().Unmap().Is6() != e.LocalAddr().Addr().Unmap().Is6() || !to.IsValid() || to.Port() == 0 {
		return nil, fmt.Errorf("%w: %v", ErrFamily, to)
	}
	if p.NoChecksum && !to.Addr().Unmap().Is4() {
		return nil, ErrChecksum
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x := newSending(s, transfer, to, p, cancel)
	x.consent = how.Consent
	if p.Feedback > 0 {
		x.adjustRate = NewAdjusting(p, how.AdjustRate, sched.Now())
		defer x.adjustRate.end()
	}
	if !x.register() {
		return nil, ErrLeft
	}
	defer x.unregister()
	if err := x.run(ctx, how.Progress); err != nil {
		return nil, err
	}
	if x.err == nil && !p.Unstamped {
		x.await(ctx)
	}
	return x.conclude(), x.err
}

func newSending(s *Session, transfer uint16, to netip.AddrPort, p Plan, cancel context.CancelFunc) *sending {
	space := 0
	for _, g := range p.Segments {
		space = max(space, g.PayloadBytes)
	}
	most := 1
	if p.Unstamped && !p.NoChecksum { // the kernel cuts none without checksums
		space, most = MaxPayloadBytes, cutMost
	}
	n := min(max(batchBytes/space, batchFewest), batchMost, p.Packets())
	x := &sending{
		session: s, plan: p, to: to, source: s.sourceFor(to), cancel: cancel,
		header: load.Header{Type: load.Data, Transfer: transfer, Session: s.id},
		out:    make([]tstamp.Out, 0, n), groups: make([]group, 0, n), spaces: make([][]byte, n), most: most,
		manner:  tstamp.SendOptions{Fragmentation: tstamp.NoFragmentation, NoChecksum: p.NoChecksum, Unstamped: p.Unstamped},
		stamps:  make([]tstamp.TxStamp, 0, stampsAtOnce),
		packets: make([]SentPacket, p.Packets()), changed: make(chan struct{}, 1),
	}
	if p.Fragment {
		x.manner.Fragmentation = tstamp.Fragmented
	}
	all := make([]byte, n*space)
	for i := range x.spaces {
		x.spaces[i] = all[i*space : (i+1)*space : (i+1)*space]
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
	over := make(chan struct{})
	defer close(over)
	if progress != nil {
		watcher.Go(func() { x.report(over, progress) })
	}
	x.begin = sched.Now()
	length := x.plan.Duration()
	x.end = x.begin + length + length/10 + graceTime
	x.cursor = newCursor(x.plan, x.begin)
	x.cursor.adjustRate, x.cursor.end = x.adjustRate, x.begin+length
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

// report tells how far it has come, and once more when it is over.
func (x *sending) report(over <-chan struct{}, progress func(Progress)) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-over:
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
	timer := time.NewTimer(stampTimeout)
	defer timer.Stop()
	ended := ctx.Done()
	for x.stamped.Load() < x.sentPackets.Load() {
		select {
		case <-x.changed:
		case <-timer.C:
			return
		case <-ended:
			ended = nil
			timer.Reset(stampTimeoutEnd)
		}
	}
}

// conclude is the result. No stamp is written any more afterwards.
func (x *sending) conclude() *Sent {
	x.unregister()
	x.result.Planned = len(x.packets)
	tried := x.prepared - (len(x.out) - x.from) // the rest was prepared only
	x.result.Packets = x.packets[:tried]
	if x.adjustRate != nil { // how many there would be was not planned
		x.result.Planned = tried
	}
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
