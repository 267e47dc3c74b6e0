package stamp

import (
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/phc"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/feasible"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
)

// Sizes of arrays indexed by the enumerations of package sample.
const (
	reasonCount = sample.ClocksApart + 1
	events      = 4 // eventNames
)

// eventNames are the values of the label event: the timestamps T1 to T4 of a packet and its reply.
func eventNames() [events]string { return [...]string{"t1", "t2", "t3", "t4"} }

// stampCounts counts timestamps by origin, sample.Absent for the missing ones.
type stampCounts [sample.FollowUp + 1]uint64

// clockState is the state of the clocks and timestamps that is exported unchanged.
type clockState struct {
	remote        remoteClock
	remoteReason  sample.Reason
	shared        bool // delays use the one clock of both ends
	contradictory bool // the path's minimum leaves no possible offset
}

// invalid counts what was not measured, by reason.
type invalid struct {
	delays     [2][reasonCount]uint64 // by direction
	roundTrips [reasonCount]uint64
}

// estimator computes delays, their bounds and variation from the timestamps of answered packets, loss from the numbers of
// decided ones, and voice quality from both: all that the verdicts of a ledger contain. It handles no sockets and
// decides about no packet.
type estimator struct {
	opts    *Options
	clock   clock.Monitor
	card    card // nil: no hardware timestamps
	out     *observed
	observe func(sample.Packet, sample.Delay, sample.Delay) // nil: no callback
	path    *probe.Target
	packets *record.Stream[record.Packet] // nil: no recorder

	ways  [2]direction
	times delay.Window // the round trips of the window
	// waits are the times in the window from user space to the kernel's transmit timestamp; nil: not measured.
	waits *delay.Window
	// replied counts the packets of the window with a reply in time.
	replied uint64
	parts   parts // of the bounds of the window
	clockState
	stamps  *[events]stampCounts // nil: not counted
	invalid *invalid             // nil: none
	collect *collector           // only for a report
	offset  *feasible.Estimator
	ends    bound.Ends // error limits of the timestamps of both ends

	lastConcluded  instant.Time
	remoteStepping bool
	steps          uint64
	era            uint64 // of both clocks: no step falls into one
	disproved      int    // windows in which a delay that proved a clock wrong still counts, this one included
	restarts       uint64 // of the remote end
}

func newEstimator(o *Options, c clock.Monitor, out *observed) *estimator {
	e := &estimator{
		opts: o, clock: c, out: out, path: &probe.Target{}, offset: newOffset(o), steps: c.Quality(instant.Now()).Steps,
		ends: bound.Ends{Local: bound.Host{RunsOneway: true}, Remote: bound.Host{Conversion: bound.CardConversion}, Limit: o.MaxBound},
	}
	for _, d := range sample.Directions() {
		e.ways[d] = direction{dir: d, out: &out.ways[d], limited: limited{windows: o.floorWindows()}}
	}
	if o.slim {
		return e
	}
	e.stamps, e.waits = new([events]stampCounts), new(delay.Window)
	for i := range e.ways {
		e.ways[i].played = &played{variation: delay.Variation{Reach: o.reach()}, voices: newPlaybacks(o)}
	}
	return e
}

// left takes the transmit timestamp of a test packet that user space passed to the kernel at a time.
func (e *estimator) left(user instant.Time, stamp sample.Stamp) {
	switch {
	case e.waits == nil:
	case stamp.Origin == sample.Kernel:
		e.waits.Add(sample.Delay{Value: max(0, stamp.At.Sub(user)), Reason: sample.OK})
	case stamp.Origin == sample.User:
		e.waits.AddOverdue()
	}
}

// take adds a verdict of the ledger.
func (e *estimator) take(v ledger.Verdict) {
	switch v.Kind {
	case ledger.PacketAnswered:
		e.conclude(v.Packet)
	case ledger.PacketUnanswered:
		e.recordLost(v.Seq, v.Sent)
	case ledger.RoundTripsDecided:
		e.replied += v.Losses.Received
		e.times.AddDecided(0, int(v.Losses.Lost))
	case ledger.PacketsDecided:
		e.ways[v.Direction].decided(v.Losses)
		e.collect.received(v)
	case ledger.PacketsUndecided:
		e.ways[v.Direction].undecided += v.Losses.Decided
	case ledger.PacketOverdue:
		e.ways[v.Direction].tooLate(v.Losses)
		e.collect.overdue(v)
	case ledger.BurstEnded:
		e.ways[v.Direction].burst(int(v.Losses.Lost))
	case ledger.RemoteIdentified:
		e.ends.Remote.RunsOneway = true
	case ledger.RemoteRenumbered:
		e.renumber()
	}
}

// arrived takes the clock error bound in a reply to a test packet, and returns the era of the clocks at its arrival. A step of
// the remote clock begins another era for all later timestamps.
func (e *estimator) arrived(remote sample.Bound) (era uint64) {
	if stepping := remote.Reason == sample.RemoteStepped; stepping != e.remoteStepping {
		if e.remoteStepping = stepping; stepping {
			e.stepped()
		}
	}
	return e.era
}

// conclude processes one answered packet.
func (e *estimator) conclude(a *ledger.PendingReply) {
	p := &a.Packet
	if e.stamps != nil {
		for i, stamp := range []sample.Stamp{p.T1, p.T2, p.T3, p.T4} {
			e.stamps[i][stamp.Origin]++
		}
	}
	quality := e.clock.Quality(instant.Now())
	if quality.Steps != e.steps {
		e.steps = quality.Steps
		e.stepped()
	}
	p.Local = a.Clock.And(quality).Bound
	e.ends.Local.Conversion = e.conversion()
	clocks := e.judge(a)
	e.lastConcluded, e.remoteReason = p.T4.At, p.Remote.Reason
	reverse, fault := e.measure(&e.ways[sample.Reverse], a, p.ReverseSeq, p.T3, p.T4, clocks)
	forward := sample.Delay{Reason: sample.NoStamp}
	if !a.Copy {
		var fault2 bool
		forward, fault2 = e.measure(&e.ways[sample.Forward], a, p.Seq, p.T1, p.T2, clocks)
		fault = fault || fault2
	}
	if fault {
		e.parts.disproved, e.disproved = true, int(sample.FaultTime/max(e.opts.Window, 1))+1
	}
	if a.Copy {
		e.record(a, forward, reverse)
		return
	}
	if e.observe != nil {
		e.observe(*p, forward, reverse)
	}
	e.parts.add(p, clocks, forward, reverse)
	e.record(a, forward, reverse)
	e.measureRoundTrip(a)
}

// conversion is the uncertainty of converted hardware timestamps; the upper limit if the card is no longer
// available.
func (e *estimator) conversion() time.Duration {
	if e.card != nil {
		if u, ok := e.card.Uncertainty(); ok {
			return u
		}
	}
	return phc.MaxUncertainty
}

// judge returns the combined clock error bound for this reply.
func (e *estimator) judge(a *ledger.PendingReply) sample.Bound {
	p := &a.Packet
	if e.shared = a.Shared && bound.SharedClock(p.Local, p.Remote); e.shared {
		p.Local, p.Remote = sample.Bound{Reason: sample.OK}, sample.Bound{Reason: sample.OK}
	}
	if reason := e.wrongResidence(p); reason != sample.OK {
		return sample.Bound{Reason: reason}
	}
	e.narrow(p)
	clocks := bound.Clocks(p.Local, p.Remote)
	if clocks.Reason == sample.OK {
		clocks.Error = e.tighten(clocks.Error, p)
	}
	return clocks
}

// wrongResidence is why a timestamp of the remote end is wrong, and with it the delay of a direction, by more than the errors of the
// timestamps and without a step of a clock: the transmit timestamp precedes the receive timestamp, or is later by more than the time
// until the reply arrived. Else it is OK.
func (e *estimator) wrongResidence(p *sample.Packet) sample.Reason {
	residence, known := p.Residence()
	switch {
	case !known || p.Remote.Reason == sample.RemoteStepped:
	case residence < -e.ends.ResidenceError(p.T2, p.T3):
		return sample.TransmitBeforeReceive
	case p.T1.Present() && p.T4.Present() && p.Local.Reason != sample.LocalStepped && residence-p.T4.At.Sub(p.T1.At) > e.ends.RoundTripError(p):
		return sample.ResidenceTooLong
	}
	return sample.OK
}

// measure adds one delay to one direction, and returns it.
//
// A delay below its bound is valid, has low confidence, is counted as such, and stays in every distribution. A
// negative delay within its bound is not a fault. Beyond its bound it is a fault: it is counted, and exported
// unchanged, never clamped (invariant 8). The other direction's delay is then too large by as much: neither has a bound.
//
// A packet whose delay in this direction exceeded the loss timeout is lost; its delay is infinite (RFC 7680 section
// 2.4, RFC 7679 section 3.4) and in no distribution.
func (e *estimator) measure(w *direction, a *ledger.PendingReply, seq uint64, from, to sample.Stamp, clocks sample.Bound) (v sample.Delay, fault bool) {
	v, fault = e.ends.Delay(w.dir, from, to, clocks)
	if a.Lost[w.dir] {
		return v, fault
	}
	if fault {
		w.negative++
	}
	w.limited.add(v, e.opts)
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
		used(&e.invalid).delays[w.dir][v.Reason]++
	}
	if hasVariation(v, a.Lost[w.dir], a.Era, e.era) {
		w.add(seq, v)
	} else {
		w.delays.AddUndefined()
	}
	return v, fault
}

// used returns *p, and allocates it at its first use.
func used[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// copied returns a copy of *p; the zero value if it was never used.
func copied[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// hasVariation reports whether a delay enters the delay variation of the current era, even if it has no bound: it is not too late, both
// its timestamps exist and are possible, and no clock was stepped since the first of them.
func hasVariation(v sample.Delay, tooLate bool, era, current uint64) bool {
	wrong := v.Reason == sample.NoStamp || v.Reason == sample.TransmitBeforeReceive || v.Reason == sample.ResidenceTooLong
	stepped := v.Reason == sample.LocalStepped || v.Reason == sample.RemoteStepped
	return !tooLate && era == current && !wrong && !stepped
}

// measureRoundTrip measures the round trip and the residence time in the reflector. A reply in time without a
// round trip has one that is not known.
func (e *estimator) measureRoundTrip(a *ledger.PendingReply) {
	rtt, reason := roundTrip(&a.Packet)
	if reason != sample.OK {
		used(&e.invalid).roundTrips[reason]++
		if !a.Expired {
			e.times.AddUndefined()
		}
		return
	}
	residence, _ := a.Packet.Residence()
	e.out.residence.Observe(residence.Seconds())
	if !a.Expired {
		e.times.Add(plain(rtt))
		e.out.roundTrip.Observe(rtt.Seconds())
	}
}

// roundTrip is the round trip of p; reason is why there is none. Two timestamps of one clock that was stepped between them have no
// difference, and without a round trip there is a wrong timestamp.
func roundTrip(p *sample.Packet) (rtt time.Duration, reason sample.Reason) {
	residence, known := p.Residence()
	rtt, ok := p.RoundTrip()
	switch {
	case ok:
		return rtt, sample.OK
	case p.Local.Reason == sample.LocalStepped:
		return 0, sample.LocalStepped
	case p.Remote.Reason == sample.RemoteStepped:
		return 0, sample.RemoteStepped
	case !known || !p.T1.Present() || !p.T4.Present():
		return 0, sample.NoStamp
	case residence < 0:
		return 0, sample.TransmitBeforeReceive
	}
	return 0, sample.ResidenceTooLong
}

// stepped is called after a step of CLOCK_REALTIME at either end: delays before and after it are not comparable.
func (e *estimator) stepped() {
	e.era++
	e.disproved = 0
	for i := range e.ways {
		w := &e.ways[i]
		w.delays.Break()
		w.limited.floors = [floorParts]time.Duration{}
		w.breakPairs()
		w.drain() // the variation window ends here
	}
	if e.offset != nil {
		e.offset.Reset()
	}
}

// renumber is called when the remote end's numbers begin anew.
func (e *estimator) renumber() {
	for i := range e.ways {
		w := &e.ways[i]
		w.breakPairs()
		w.drain() // the numbers, and perhaps the clock, are others
	}
	e.restarts++
	if e.offset != nil {
		e.offset.Reset() // the remote host and its clock may be others
	}
}

// plain makes a sample.Delay of a difference without a clock offset.
func plain(v time.Duration) sample.Delay { return sample.Delay{Value: v, Reason: sample.OK} }

// newOffset returns the estimator of the clocks' offset; nil if it is not configured.
func newOffset(o *Options) *feasible.Estimator {
	if o.PathMinimum == 0 {
		return nil
	}
	return &feasible.Estimator{Minimum: o.PathMinimum}
}

// narrow adds one packet to the bound of the clocks' offset. The clocks need not be trusted, but must not have been
// stepped.
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

// stamped converts p to the input of the offset estimator.
func (e *estimator) stamped(p *sample.Packet) feasible.Packet {
	return feasible.Packet{
		T1: p.T1.At, T2: p.T2.At, T3: p.T3.At, T4: p.T4.At,
		ForwardStamps: e.ends.StampError(sample.Forward, p.T1, p.T2),
		ReverseStamps: e.ends.StampError(sample.Reverse, p.T3, p.T4),
	}
}

// tighten returns the combined clock error bound: the clocks' own, or less where the path's minimum delay limits
// the offset further in either delay of p. A contradictory path minimum is ignored; if path and clocks contradict
// each other, one is wrong, and the larger bound covers both.
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
