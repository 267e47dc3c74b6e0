package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/net/kernelcounts"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/loadfmt"
)

// monotonic is a reading of sched.Now, which steps of the system clock do not affect.
type monotonic = time.Duration

// Progress of a stream.
type Progress struct {
	// Packets and Bytes (UDP payload) were sent, or received without duplicates.
	Packets int
	Bytes   int64
	// Elapsed since the first packet was due or received; zero before.
	Elapsed time.Duration
}

// Reception is the reception of a stream, from Expect to Finish.
type Reception struct {
	session  *Session
	transfer uint16
	planned  int
	length   time.Duration // planned duration
	// release ends coalescing for this stream; it may be called twice.
	release func()
	begun   monotonic // when Expect was called
	// feedback is the plan's; zero: none, and tally is nil.
	feedback time.Duration

	// dropsBefore and countsBefore are the kernel's counters at Expect.
	dropsBefore  uint64
	countsBefore kernelcounts.Counts

	// Guarded by session.mu; the receiving goroutine writes the fields below.
	received    Received
	seen        []uint64 // one bit per packet of the plan
	distinct    int
	space       int // entries left for duplicates and damaged headers
	bytes       int64
	first, last monotonic // arrivals; zero: none
	sent        int       // negative: not known yet
	group, most int       // packets with the last timestamp, and the most with one: coalesced by the kernel
	coalesced   bool
	left        bool // the session has left
	tally       *StatusCounter

	// changed wakes Finish.
	changed chan struct{}
}

// ErrTransferInUse is wrapped if a transfer of that number is being received, ErrSessionLeft if the session has
// left.
var (
	ErrTransferInUse = errors.New("stream: the transfer is being received already")
	ErrSessionLeft   = errors.New("stream: the session has left")
)

// slack plus a 64th of the plan is the space for duplicates and damaged
// headers.
const slack = 1024

// extra returns the number of entries for duplicates and damaged headers, of a stream with so many planned packets.
func extra(planned int) int { return min(planned/64+slack, MaxPackets-planned) }

// Expect begins the reception of a stream. It uses about 40 bytes of memory for each planned
// packet.
func (s *Session) Expect(transfer uint16, p Plan) (*Reception, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	n := p.Packets()
	r := &Reception{
		session: s, transfer: transfer, planned: n, length: p.Duration(), begun: sched.Now(), sent: -1,
		seen: make([]uint64, (n+63)/64), changed: make(chan struct{}, 1),
		dropsBefore: s.endpoint.conn.Stats().Dropped, countsBefore: s.endpoint.counters.Read(),
	}
	r.space = extra(n)
	r.received.Packets = make([]ReceivedPacket, 0, n+r.space)
	if r.feedback = p.Feedback; r.feedback > 0 {
		r.tally = &StatusCounter{}
	}
	r.release = func() {}
	if p.Unstamped {
		r.coalesced = true
		s.endpoint.coalesce(1)
		r.release = sync.OnceFunc(func() { s.endpoint.coalesce(-1) })
	}
	if err := s.admit(r); err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

func (s *Session) admit(r *Reception) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return ErrSessionLeft
	}
	if slices.ContainsFunc(s.receptions, func(o *Reception) bool { return o.transfer == r.transfer }) {
		return fmt.Errorf("%w: %d", ErrTransferInUse, r.transfer)
	}
	s.receptions = append(s.receptions, r)
	return nil
}

// add records a packet with a valid header. session.mu must be held, as in the methods below except
// Finish.
func (r *Reception) add(in *tstamp.In, h loadfmt.Header, now monotonic) {
	r.arrived(now)
	damage := Intact
	if v := loadfmt.Compare(in.Payload, h); v.Damage != loadfmt.Intact {
		damage = damageOf(v.Damage)
		r.keep(in, h, damage, v)
	}
	word, bit := h.Seq/64, uint64(1)<<(h.Seq%64)
	copied := r.seen[word]&bit != 0
	if r.tally != nil && damage == Intact {
		r.tally.Add(h.Seq, len(in.Payload), copied, in.Stamp.At, h.Micros)
	}
	if copied {
		r.appendOther(in, h.Seq, damage)
		return
	}
	r.append(in, h.Seq, damage)
	r.seen[word] |= bit
	r.distinct++
	r.bytes += int64(len(in.Payload))
	if r.distinct == r.sent {
		r.signal()
	}
}

func (r *Reception) addBadHeader(in *tstamp.In, h loadfmt.Header, now monotonic) {
	r.keep(in, h, BadHeader, loadfmt.Comparison{Differing: -1})
	if r.appendOther(in, h.Seq, BadHeader) {
		r.arrived(now)
	}
}

func (r *Reception) arrived(now monotonic) {
	r.last = now
	if r.first == 0 {
		r.first = now
	}
}

// appendOther appends a duplicate or a packet with a damaged header, if there is space; it returns
// whether there was.
func (r *Reception) appendOther(in *tstamp.In, seq uint32, damage Damage) bool {
	if r.space == 0 {
		r.received.Overflow++
		return false
	}
	r.space--
	r.append(in, seq, damage)
	return true
}

func (r *Reception) append(in *tstamp.In, seq uint32, damage Damage) {
	if n := len(r.received.Packets); n == 0 || r.received.Packets[n-1].Stamp != in.Stamp {
		r.group = 0
	}
	r.group++
	r.most = max(r.most, r.group)
	r.received.Packets = append(r.received.Packets, ReceivedPacket{
		Seq: seq, Stamp: in.Stamp, PayloadBytes: uint16(len(in.Payload)), Damage: damage,
	})
}

func damageOf(k loadfmt.Damage) Damage {
	switch k {
	case loadfmt.Intact:
	case loadfmt.Truncated:
		return Truncated
	case loadfmt.Overwritten:
		return Overwritten
	case loadfmt.BitErrors:
		return BitErrors
	}
	return Intact
}

// keep stores a sample of a damaged packet, if there is space.
func (r *Reception) keep(in *tstamp.In, h loadfmt.Header, damage Damage, v loadfmt.Comparison) {
	r.received.CorruptPackets++
	if len(r.received.Corrupt) >= MaxCorrupt {
		return
	}
	c := Corrupt{
		Seq: h.Seq, Damage: damage.String(), PayloadBytes: len(in.Payload),
		First: v.First, Differing: max(v.Differing, 0),
		Got: slices.Clone(in.Payload[v.First:min(len(in.Payload), v.First+CorruptBytes)]),
	}
	if damage != BadHeader { // a bad header has no valid length
		c.WantBytes = int(h.PayloadBytes)
		c.Want = h.AppendContent(nil, v.First, v.First+CorruptBytes)
	}
	r.received.Corrupt = append(r.received.Corrupt, c)
}

func (r *Reception) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// abandon ends the reception when the session leaves.
func (r *Reception) abandon() {
	r.session.mu.Lock()
	r.left = true
	r.session.mu.Unlock()
	r.release()
	r.signal()
}

// SetSent sets the number of packets that the sender has sent.
func (r *Reception) SetSent(n int) {
	r.session.mu.Lock()
	r.sent = max(n, 0)
	r.session.mu.Unlock()
	r.signal()
}

// Progress returns the present progress.
func (r *Reception) Progress() Progress {
	r.session.mu.Lock()
	defer r.session.mu.Unlock()
	p := Progress{Packets: r.distinct, Bytes: r.bytes}
	if r.first != 0 {
		p.Elapsed = r.last - r.first
	}
	return p
}

// Finish waits for the rest and returns what was received. It ends when sent different packets were
// received, after idle without packets, when the session has left, or when ctx ends. A negative sent is
// unknown: see SetSent; until it is known, idle begins at the planned end at the earliest, and is longer
// by unreported. Later packets are ignored. It must be called exactly
// once.
func (r *Reception) Finish(ctx context.Context, sent int, idle time.Duration) *Received {
	if sent >= 0 {
		r.SetSent(sent)
	}
	return r.FinishReported(ctx, idle, unreported)
}

// FinishReported is Finish while the number of sent packets is unknown, and may take report longer than the packets to arrive.
func (r *Reception) FinishReported(ctx context.Context, idle, report time.Duration) *Received {
	called := sched.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		left, done := r.remaining(called, idle, report)
		if done || left <= 0 {
			break
		}
		timer.Reset(left)
		select {
		case <-ctx.Done():
			return r.end()
		case <-timer.C:
		case <-r.changed:
		}
	}
	return r.end()
}

// unreported is added to the idle timeout while the number of sent packets is unknown: it arrives over
// another connection, and the sender's host may have stalled.
const unreported = 2 * time.Second

// remaining returns the rest of the idle timeout, and whether the reception is done.
func (r *Reception) remaining(called monotonic, idle, report time.Duration) (left time.Duration, done bool) {
	r.session.mu.Lock()
	defer r.session.mu.Unlock()
	since := max(r.last, called)
	if r.sent < 0 {
		since = max(since, r.begun+r.length) + report
	}
	return since + idle - sched.Now(), r.left || r.sent >= 0 && r.distinct >= r.sent
}

func (r *Reception) end() *Received {
	s := r.session
	r.release()
	dropped, now, before := kernelcounts.Since(s.endpoint.conn.Stats().Dropped, r.dropsBefore), s.endpoint.counters.Read(), r.countsBefore
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receptions = slices.DeleteFunc(s.receptions, func(o *Reception) bool { return o == r })
	r.received.Dropped = r.packetsOf(dropped)
	r.received.BacklogDropped = kernelcounts.Since(now.Backlog, before.Backlog)
	r.received.ChecksumErrors = kernelcounts.Since(now.ChecksumErrors, before.ChecksumErrors)
	return &r.received
}

// packetsOf converts the kernel's drops into packets. The kernel counts coalesced packets as one; the
// result is at most the number of missing packets.
func (r *Reception) packetsOf(drops uint64) uint64 {
	if !r.coalesced {
		return drops
	}
	sent := r.sent
	if sent < 0 {
		sent = r.planned
	}
	return min(drops*uint64(max(r.most, 1)), uint64(max(sent-r.distinct, 0)))
}
