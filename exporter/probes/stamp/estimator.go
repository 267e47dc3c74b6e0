package stamp

import (
	"math"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/feasible"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/record"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/tstamp"
	"oneway.example/exporter/tstamp/phc"
	wire "oneway.example/exporter/wire/stamp"
)

// Sizes of arrays indexed by the enumerations of package sample.
const (
	reasonCount = sample.BoundTooLarge + 1
	events      = 4 // T1..T4
)

// stampCounts counts stamps by origin, sample.Absent for the missing ones.
type stampCounts [sample.FollowUp + 1]uint64

// verdict is what is told of the clocks and stamps as it is.
type verdict struct {
	remote        remoteClock
	remoteReason  sample.Reason
	shared        bool // delays stand on the one clock of both ends
	contradictory bool // the path's minimum leaves no offset
	stamps        [events]stampCounts
	noRoundTrip   [reasonCount]uint64 // answers that tell no time of a round trip
}

// estimator makes delays, their bounds and their variation of the stamps of replies, and voice quality
// of those. It knows no socket, and counts no packet.
type estimator struct {
	opts    *Options
	clock   clock.Monitor
	card    card // nil: none stamps
	out     *observed
	observe func(sample.Packet, sample.Delay, sample.Delay) // nil: nobody
	path    probe.Target
	packets *record.Stream[record.Packet] // nil: nobody

	replies replies
	ways    [2]direction
	times   delay.Window // the round trips of the window
	parts   parts        // of the bounds of the window
	verdict
	collect *collector // only for a report
	offset  *feasible.Estimator
	ends    bound.Ends // what the stamps of both ends may be off by

	lastConcluded  instant.Time
	remoteStepping bool
	steps          uint64
	era            uint64 // of both clocks: no step falls into one
	restarts       uint64 // of the remote end
}

func newEstimator(o *Options, c clock.Monitor, out *observed) *estimator {
	e := &estimator{
		opts: o, clock: c, out: out, offset: newOffset(o), steps: c.Quality(instant.Now()).Steps,
		ends: bound.Ends{Local: bound.Host{Ours: true}, Remote: bound.Host{Conversion: bound.CardConversion}, Most: o.MaxBound},
	}
	for _, d := range sample.Directions() {
		e.ways[d] = direction{dir: d, out: &out.ways[d], voices: newPlaybacks(o), plain: o.slim}
	}
	return e
}

// replyOf joins what is known of the reply to f.
func (e *estimator) replyOf(in *tstamp.In, r *reply, f *outstanding, now time.Duration) pendingReply {
	a := pendingReply{
		packet: e.sampleOf(in, r, f), outstanding: f, arrived: now, clock: f.clock.and(e.clock.Quality(instant.Now())),
		shared: r.filled() && r.receipt.Clock == wire.ClockShared, expired: f.state != packetOutstanding, waiting: true,
	}
	// A step there begins another era for all stamps that come after it.
	if stepping := a.packet.Remote.Reason == sample.RemoteStepped; stepping != e.remoteStepping {
		if e.remoteStepping = stepping; stepping {
			e.stepped()
		}
	}
	a.era = e.era
	if now-f.sent > e.opts.LossTimeout {
		a.lost = e.overdue(&a)
	}
	return a
}

// sampleOf joins the four stamps of one packet.
func (e *estimator) sampleOf(in *tstamp.In, r *reply, f *outstanding) sample.Packet {
	p := sample.Packet{
		Seq: f.seq, T1: f.t1, T4: in.Stamp,
		T2:     sample.Stamp{At: e.opts.decode(r, r.packet.T2, in.At), Origin: sample.InPacket},
		T3:     sample.Stamp{At: e.opts.decode(r, r.packet.T3, in.At), Origin: sample.InPacket},
		Remote: remoteBound(r),
	}
	if r.filled() && r.receipt.T2Origin != sample.Absent {
		p.T2.Origin = r.receipt.T2Origin
	}
	for _, t := range []*sample.Stamp{&p.T2, &p.T3} {
		if t.At.IsZero() {
			t.Origin = sample.Absent
		}
	}
	return p
}

// overdue says in which directions a packet took longer than the waiting time, for certain,
// whose round trip did: so a clock that is wrong makes no loss. Where the clocks are not
// trusted, or too far apart, that cannot be told, and no direction is blamed.
func (e *estimator) overdue(a *pendingReply) (lost [2]bool) {
	p := &a.packet
	least, ok := e.surely(a.clock.bound, p.Remote, a.shared)
	if !ok {
		return lost
	}
	t1 := a.outstanding.user
	if p.T1.Present() {
		t1 = p.T1.At
	}
	lost[sample.Forward] = p.T2.Present() && p.T2.At.Sub(t1) > least
	lost[sample.Reverse] = p.T3.Present() && p.T4.At.Sub(p.T3.At) > least
	return lost
}

// surely is how long a delay between the clocks local and remote must be measured for the true one
// to be beyond the waiting time; false if they are not trusted.
func (e *estimator) surely(local, remote sample.Bound, shared bool) (least time.Duration, ok bool) {
	if shared && bound.SharedClock(local, remote) {
		return e.opts.LossTimeout, true
	}
	clocks := bound.Clocks(local, remote)
	return bound.Sum(e.opts.LossTimeout, clocks.Error), clocks.Reason == sample.OK
}

// forgotten tells whether a packet of which nothing is remembered but this reply took longer than the
// waiting time on its way there, for certain.
func (e *estimator) forgotten(r *reply, in *tstamp.In) bool {
	q := e.clock.Quality(instant.Now())
	t1, t2 := e.opts.format.Decode(r.packet.SenderT1, e.opts.TAIOffset, in.At), e.opts.decode(r, r.packet.T2, in.At)
	least, trusted := e.surely(q.Bound, remoteBound(r), r.receipt.Clock == wire.ClockShared)
	return q.Steps == e.steps && trusted && !t2.IsZero() && t2.Sub(t1) > least
}

// conclude takes one complete answer.
func (e *estimator) conclude(a *pendingReply) {
	p := &a.packet
	if f := a.outstanding; f != nil && f.seq == p.Seq && f.state != packetNone { // its place was not taken since
		p.T1 = f.sentAt()
	}
	for i, stamp := range []sample.Stamp{p.T1, p.T2, p.T3, p.T4} {
		e.stamps[i][stamp.Origin]++
	}
	quality := e.clock.Quality(instant.Now())
	if quality.Steps != e.steps {
		e.steps = quality.Steps
		e.stepped()
	}
	p.Local = a.clock.and(quality).bound
	e.ends.Local.Conversion = e.conversion()
	clocks := e.judge(a)
	e.lastConcluded, e.remoteReason = p.T4.At, p.Remote.Reason
	forward := e.measure(&e.ways[sample.Forward], a, p.Seq, p.T1, p.T2, clocks)
	reverse := e.measure(&e.ways[sample.Reverse], a, p.ReverseSeq, p.T3, p.T4, clocks)
	if e.observe != nil {
		e.observe(*p, forward, reverse)
	}
	e.parts.add(p, clocks, forward, reverse)
	e.record(a, forward, reverse)
	e.measureRoundTrip(a)
}

// conversion is the uncertainty of the card's stamps, or what it was at the most if
// the card was lost since.
func (e *estimator) conversion() time.Duration {
	if e.card != nil {
		if u, ok := e.card.Uncertainty(); ok {
			return u
		}
	}
	return phc.MaxUncertainty
}

// judge is what both clocks together may be off by for this reply.
func (e *estimator) judge(a *pendingReply) sample.Bound {
	p := &a.packet
	if e.shared = a.shared && bound.SharedClock(p.Local, p.Remote); e.shared {
		p.Local, p.Remote = sample.Bound{Reason: sample.OK}, sample.Bound{Reason: sample.OK}
	}
	e.narrow(p)
	clocks := bound.Clocks(p.Local, p.Remote)
	if clocks.Reason == sample.OK {
		clocks.Error = e.tighten(clocks.Error, p)
	}
	return clocks
}

// measure feeds one direction with one delay, and returns it.
//
// A delay below its bound is valid, of low confidence, and counted as such: it stays in
// every distribution. A negative delay within its bound is no proof of a fault. Beyond its
// bound it is: counted, and shown as it is, never clamped (invariant 8).
//
// The delay of a packet that is lost in this direction, because it took longer than the
// waiting time, is infinite (RFC 7680 section 2.4, RFC 7679 section 3.4): it is in no
// distribution.
func (e *estimator) measure(w *direction, a *pendingReply, seq uint64, from, to sample.Stamp, clocks sample.Bound) sample.Delay {
	v, fault := e.ends.Delay(w.dir, from, to, clocks)
	if a.lost[w.dir] {
		return v
	}
	if fault {
		w.negative++
	}
	switch {
	case v.OK():
		w.out.delay.Observe(v.Value.Seconds())
		if bound.LowConfidence(v) {
			w.lowConfidence++
		}
		if from.TXUncertainty > bound.KernelError {
			w.txUncertain++
		}
	default:
		w.invalid[v.Reason]++
	}
	if hasDifference(v.Reason) && a.era == e.era { // of other clocks than the window's not even differences mean anything
		w.add(seq, v)
	}
	return v
}

// hasDifference: differences of such delays mean something, whatever they are worth by themselves.
func hasDifference(r sample.Reason) bool {
	return r != sample.NoStamp && r != sample.LocalStepped && r != sample.RemoteStepped
}

// measureRoundTrip takes the round trip, and the time in the reflector. Two stamps of one
// clock that was stepped between them have no difference, and a reflector does not send
// before it has received.
func (e *estimator) measureRoundTrip(a *pendingReply) {
	p := &a.packet
	residence, known := p.Residence()
	switch {
	case p.Local.Reason == sample.LocalStepped:
		e.noRoundTrip[sample.LocalStepped]++
		return
	case p.Remote.Reason == sample.RemoteStepped, known && residence < 0:
		e.noRoundTrip[sample.RemoteStepped]++
		return
	case known:
		e.out.residence.Observe(residence.Seconds())
	}
	if rtt, ok := p.RoundTrip(); ok && !a.expired {
		e.times.Add(plain(rtt))
		e.out.roundTrip.Observe(rtt.Seconds())
	}
}

// stepped is called when CLOCK_REALTIME has jumped at either end: the window's delays are of
// two clocks and mean nothing together.
func (e *estimator) stepped() {
	e.era++
	for i := range e.ways {
		w := &e.ways[i]
		w.delays.Break()
		w.variation.Break()
		w.drain() // its window ends here
	}
	if e.offset != nil {
		e.offset.Reset()
	}
}

// renumber is called when the remote end's numbers have begun anew.
func (e *estimator) renumber() {
	e.ways[sample.Forward].variation.Break()
	e.ways[sample.Reverse].variation.Break()
	e.flush(math.MaxInt64)
	e.replies = replies{}
	e.restarts++
	if e.offset != nil {
		e.offset.Reset() // with its host, maybe, and that one's clock
	}
}

// flush concludes the replies that came before the given time.
func (e *estimator) flush(before time.Duration) { e.replies.flush(before, e.conclude) }

// plain makes a sample.Delay of a difference that no clock offset touches.
func plain(v time.Duration) sample.Delay { return sample.Delay{Value: v, Reason: sample.OK} }

// newOffset is the estimator of the clocks' offset; nil if it is not wanted.
func newOffset(o *Options) *feasible.Estimator {
	if o.PathMinimum == 0 {
		return nil
	}
	return &feasible.Estimator{Minimum: o.PathMinimum}
}

// narrow takes one packet for the bound of the clocks' offset. The clocks need not be
// trusted for it, but must not have been stepped.
func (e *estimator) narrow(p *sample.Packet) {
	switch {
	case e.offset == nil || p.Local.Reason == sample.LocalStepped:
		return
	case p.Remote.Reason == sample.RemoteStepped:
		e.offset.Reset()
		return
	case !p.T1.Present() || !p.T2.Present() || !p.T3.Present() || !p.T4.Present():
		return
	}
	stamped := e.stamped(p)
	e.offset.Add(&stamped)
	e.contradictory = e.offset.Contradictory(&stamped)
}

// stamped is p as the estimator of the offset takes it.
func (e *estimator) stamped(p *sample.Packet) feasible.Packet {
	return feasible.Packet{
		T1: p.T1.At, T2: p.T2.At, T3: p.T3.At, T4: p.T4.At,
		ForwardStamps: e.ends.Stamps(sample.Forward, p.T1, p.T2),
		ReverseStamps: e.ends.Stamps(sample.Reverse, p.T3, p.T4),
	}
}

// tighten returns the bound of both clocks together, given what they say of
// themselves: less, where the path's least delay leaves less in either delay of p. What
// contradicts itself says nothing; where the path contradicts the clocks, one of the two
// is wrong, and the larger bound covers either.
func (e *estimator) tighten(clocks time.Duration, p *sample.Packet) time.Duration {
	if e.offset == nil || !p.T1.Present() || !p.T2.Present() || !p.T3.Present() || !p.T4.Present() {
		return clocks
	}
	stamped := e.stamped(p)
	low, high, ok := e.offset.Forward(&stamped)
	low2, high2, ok2 := e.offset.Reverse(&stamped)
	if !ok || !ok2 {
		return clocks
	}
	low, high = min(low, low2), max(high, high2)
	feasible := max(low.Abs(), high.Abs())
	if low > clocks || high < -clocks {
		return feasible
	}
	return min(clocks, feasible)
}
