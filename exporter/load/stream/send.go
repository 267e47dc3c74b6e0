package stream

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/loadfmt"
)

// Times of sending.
const (
	// tick is the shortest sleep: packets due within it are sent after it. At higher rates packets
	// leave in groups, one per tick.
	tick = 250 * time.Microsecond
	// retry is the interval of retries of a packet for which the kernel had no space.
	retry = 500 * time.Microsecond
	// timeout is the time of retries after a packet was due; timeoutUnpaced the one after the first
	// attempt in a segment without intervals.
	timeout         = 100 * time.Millisecond
	timeoutUnpaced  = time.Second
	graceTime       = time.Second // plus a tenth of the plan's duration: see Send
	progressEvery   = 100 * time.Millisecond
	stampTimeout    = tstamp.StampWait + 500*time.Millisecond
	stampTimeoutEnd = 200 * time.Millisecond // after the end of ctx
)

// Sizes of batches.
const (
	batchBytes          = 1 << 20
	maxBatch            = 256
	minBatch            = 16
	contextCheckPackets = 1024 // packets between checks of the context
	maxSegmentPackets   = 64   // segments of one packet (UDP_MAX_SEGMENTS until Linux 6.9)
	stampsAtOnce        = 256
)

// Errors of Send.
var (
	// ErrFamily: the destination has another address family than the socket.
	ErrFamily = errors.New("stream: the address family differs from the socket's")
	// ErrChecksum: packets without UDP checksum over IPv6, which receivers drop (RFC 8200 section
	// 8.1).
	ErrChecksum = errors.New("stream: packets without checksum require IPv4")
)

// group describes one tstamp.Out: one packet, or several that the kernel segments (UDP_SEGMENT).
type group struct {
	// due is the planned time of the first packet; in an unpaced segment, the time of its preparation.
	due     monotonic
	unpaced bool
	first   int // number of the first packet
	packets int
}

// sending is a call of Send. Only the pacer's goroutine uses the fields without another
// guard.
type sending struct {
	session    *Session
	plan       Plan
	to         netip.AddrPort
	source     netip.Addr
	header     loadfmt.Header
	token      uint32
	cancel     context.CancelFunc
	adjustRate *RateControl // of a plan with feedback; otherwise nil
	consent    Consent      // nil: not required

	cursor      cursor
	begin       monotonic
	end         monotonic // latest end of the paced segments
	out         []tstamp.Out
	spaces      [][]byte // buffers of the payload of out
	groups      []group  // of out
	from        int      // out[from:] is prepared and not sent
	most        int      // most packets in a group
	sendOptions tstamp.SendOptions
	stamps      []tstamp.TxStamp
	wall        instant.Time // the system clock at wallAt
	wallAt      monotonic    // see wall
	// refused is when the kernel first had no space for out[from]; zero: it had.
	refused monotonic
	// refusedAt is the time of the last refused packet; zero: none lately.
	refusedAt monotonic
	result    Sent
	err       error

	// packets are those of the whole plan, the first prepared of which are made. The pacer's goroutine
	// writes a packet's timestamp before it is sent, and then the goroutine that reads the kernel's does
	// under the endpoint's mu.
	packets  []SentPacket
	prepared int
	stamped  atomic.Int64
	changed  chan struct{} // a timestamp was received

	sentPackets, sentBytes atomic.Int64
	firstDue               atomic.Int64
	pathMTU                atomic.Int64 // zero: no router has reported one
}

// SendOptions has the options of Send.
type SendOptions struct {
	// Progress is called from another goroutine ten times a second, once more after the last packet,
	// and not after Send has returned.
	Progress func(Progress)
	// AdjustRate decides the rate of a plan with feedback at this end, by each report of the receiver;
	// nil: the orders of the other end count. After an idle timeout of a second, or four reports, the
	// rate is halved, and again after each further one.
	AdjustRate Adjuster
	// Consent: packets are sent only with consent. Packets that are due without it are not sent: they have
	// no timestamp, and are not counted as Refused. With consent again the plan continues at
	// its present time.
	Consent Consent
}

// Send sends the plan's packets, each at its time, and returns when all are sent and their
// timestamps have arrived or timed out.
//
// The schedule is absolute on the monotonic clock: a late packet does not delay those after it. Packets
// due within a quarter of a millisecond leave together. A packet for which the kernel has no space
// (ENOBUFS, EAGAIN) is retried for 100 ms, in an unpaced segment for a second, and then counted in
// Sent.Refused.
//
// If the host is too slow for the plan, packets are late, and Send ends a second plus a tenth of the
// plan's duration after its end; the rest is not tried. A segment without intervals has no time limit;
// limit it by ctx.
//
// For an Unstamped plan the kernel segments large packets if it can, and the time of sending is that
// of the system call.
//
// A plan with feedback follows the orders of the other end, or SendOptions.AdjustRate.
//
// When ctx ends or the session leaves, Send returns what was sent so far and no error. After an error,
// such as a closed Endpoint, nothing more can be sent.
func (s *Session) Send(ctx context.Context, transfer uint16, to netip.AddrPort, p Plan, options SendOptions) (*Sent, error) {
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
	x.consent = options.Consent
	if p.Feedback > 0 {
		x.adjustRate = NewRateControl(p, options.AdjustRate, sched.Now())
		defer x.adjustRate.end()
	}
	if !x.register() {
		return nil, ErrSessionLeft
	}
	defer x.unregister()
	if err := x.run(ctx, options.Progress); err != nil {
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
	if p.Unstamped && !p.NoChecksum { // the kernel does not segment packets without checksums
		space, most = MaxPayloadBytes, maxSegmentPackets
	}
	n := min(max(batchBytes/space, minBatch), maxBatch, p.Packets())
	x := &sending{
		session: s, plan: p, to: to, source: s.sourceFor(to), cancel: cancel,
		header: loadfmt.Header{Type: loadfmt.Data, Transfer: transfer, Session: s.id},
		out:    make([]tstamp.Out, 0, n), groups: make([]group, 0, n), spaces: make([][]byte, n), most: most,
		sendOptions: tstamp.SendOptions{Fragmentation: tstamp.NoFragmentation, NoChecksum: p.NoChecksum, Unstamped: p.Unstamped},
		stamps:      make([]tstamp.TxStamp, 0, stampsAtOnce),
		packets:     make([]SentPacket, p.Packets()), changed: make(chan struct{}, 1),
	}
	if p.Fragment {
		x.sendOptions.Fragmentation = tstamp.Fragmented
	}
	all := make([]byte, n*space)
	for i := range x.spaces {
		x.spaces[i] = all[i*space : (i+1)*space : (i+1)*space]
	}
	return x
}

// register adds the stream to the endpoint, for its timestamps.
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

// run sends the packets until the end of the plan or of ctx.
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

// report calls progress periodically and once at the end.
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

// collect reads the timestamps if many are outstanding: their queue in the kernel is bounded, and the
// receiving goroutine may not be running.
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

// stamped passes transmit timestamps to their streams.
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

// await waits for the outstanding timestamps.
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

// conclude returns the result. No timestamp is written afterwards.
func (x *sending) conclude() *Sent {
	x.unregister()
	x.result.Planned, x.result.PathMTU = len(x.packets), int(x.pathMTU.Load())
	tried := x.prepared - (len(x.out) - x.from) // the rest was only prepared
	x.result.Packets = x.packets[:tried]
	if x.adjustRate != nil { // the plan is an upper limit
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
