// Package ledger counts the test packets of a session in both directions: sent, received, lost, dropped by a host,
// outstanding. It decides about each packet from its reply, or from the absence of one, and passes verdicts to an estimator.
// It knows neither sockets nor estimators.
package ledger

import (
	"math"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/estimate/seqwin"
)

// RemoteKind is the kind of reflector at the remote end, as its replies show it.
type RemoteKind uint8

const (
	// RemoteUnknown has not replied yet.
	RemoteUnknown RemoteKind = iota
	// RemoteOurs fills in the Receipt: both directions are exact.
	RemoteOurs
	// RemoteStateful numbers its replies: losses are attributed to a direction.
	RemoteStateful
	// RemoteStateless copies the sender's number: losses are not attributed.
	RemoteStateless
)

// String is the kind in reports and in the label `reflector` of oneway_path_info.
func (k RemoteKind) String() string {
	return [...]string{"unknown", "oneway", "stateful", "stateless"}[k]
}

// Tallies are counts that are exported unchanged.
type Tallies struct {
	// Kind is the kind of the remote end.
	Kind RemoteKind
	// Shared is whose replies the remote end numbers together.
	Shared Sharing
	// LastSuccess is when the last reply in time arrived; the zero Time: never.
	LastSuccess instant.Time
	// RoundTripsLost had no reply within the loss timeout, RoundTripsReceived had one.
	RoundTripsLost, RoundTripsReceived uint64
	// AnsweredLate had the first reply after the loss timeout; they are lost.
	AnsweredLate uint64
	// Restarts counts the restarts of the remote end.
	Restarts uint64
	// Hops and TrafficClass are of each direction.
	Hops         [2]Hops
	TrafficClass [2]TrafficClass
}

// Account counts the packets of one session in both directions and decides about each. It handles neither sockets nor
// delays, except that a delay above the loss timeout is a loss.
type Account struct {
	opts    *Options
	decided func(Verdict)
	dropped func(lost uint64, ago time.Duration) uint64

	outstandingPackets outstandingPackets
	replies            replies
	statsQuery         statisticsPoller
	remote             remote
	order              order
	numbered           numbered
	fwd, rev           counts
	// reverse is the window of the replies' numbers; reverseOn: it has been started. renumbered: a reply whose number
	// began anew started it, and the reflector has not reported a restart since.
	reverse               seqwin.Window
	reverseOn, renumbered bool
	remoteHost            bool // the remote end reports the drops of its socket
	returned              bool // see Returned
	// lateMillis is how long after its time the present decision is taken, in ms: a busy host reads packets and ticks late.
	lateMillis  int32
	remoteDrops Drops
	// silence is the longest time without a reply since reply numbers are missing.
	silence       time.Duration
	lastHostBlock lastHostBlock

	Tallies
	faults *Faults // nil before the first one

	now, lastReply time.Duration // monotonic; the last one 0: never
	// awaited is since when a reply has been awaited, less the time in which this host did not run and took none.
	awaited time.Duration
}

// New makes an account at the monotonic time now. It passes its verdicts to decided, in their order. dropped
// returns how many of a number of reverse losses were dropped by this host's socket, at most ago old; it may be nil.
func New(o Options, now time.Duration, decided func(Verdict), dropped func(lost uint64, ago time.Duration) uint64) *Account {
	a := &Account{
		opts: &o, decided: decided, dropped: dropped, outstandingPackets: newOutstandingPackets(&o), now: now, awaited: now,
		fwd: counts{dir: sample.Forward, decided: decided}, rev: counts{dir: sample.Reverse, decided: decided},
	}
	a.outstandingPackets.lose = a.unanswered
	a.reserve()
	return a
}

// reserve makes space for the replies of one loss timeout, doubled because Poisson arrivals cluster.
func (a *Account) reserve() { a.reverse.Reserve(2 * int(a.opts.LossTimeout/a.opts.Interval)) }

// undirected counts lost packets without a direction.
func (a *Account) undirected(why LowConfidenceReason, n uint64) {
	if n > 0 {
		a.fault().LowConfidence[why] += n
	}
}

// Skip counts due packets that were not sent.
func (a *Account) Skip(why SkipReason, n uint64) {
	if n > 0 {
		a.fault().Skipped[why] += n
	}
}

// lose counts round trips without a reply within the loss timeout.
func (a *Account) lose(n int) {
	a.RoundTripsLost += uint64(n)
	a.order.explain(n)
	a.decided(Verdict{Kind: RoundTripsDecided, Losses: loss.Delta{Lost: uint64(n)}})
}

// unanswered reports the loss of the round trip of test packet seq.
func (a *Account) unanswered(seq uint64, f *Outstanding) {
	a.decided(Verdict{Kind: PacketUnanswered, Sent: f, Seq: seq})
}

// answered counts first replies, late ones included.
func (a *Account) answered() uint64 { return a.RoundTripsReceived + a.AnsweredLate }

// Request is the request that a reply refers to.
type Request struct {
	// StatsQuery: it is a statistics query; otherwise it is test packet Seq.
	StatsQuery bool
	Seq        uint64
	// Outstanding is the state of test packet Seq; nil: no longer remembered.
	Outstanding *Outstanding
}

// Forgotten reports whether it is a test packet that is no longer remembered.
func (q *Request) Forgotten() bool { return !q.StatsQuery && q.Outstanding == nil }

// first reports whether this is the first reply to the request.
func (q *Request) first() bool { return q.Outstanding != nil && q.Outstanding.unheard() }

// RequestOf finds the request by its number and its T1, which only this host and observers of the packet have. A reply
// that matches no request changes no state. For a request that is no longer remembered, the random Run in our
// reflector's Receipt identifies the session.
func (a *Account) RequestOf(r *Reply) (q Request, why DiscardReason, ok bool) {
	why = DiscardUnknownSequence
	test := !r.Filled() || !r.Receipt.StatsQuery
	if test {
		q.Seq = seqwin.Extend(a.outstandingPackets.next, r.Packet.SenderSeq)
		q.Outstanding = a.outstandingPackets.get(q.Seq)
		if q.Outstanding != nil {
			why = DiscardBadEcho
			if r.Packet.SenderT1 == a.opts.encode(q.Outstanding.user) {
				return q, 0, true
			}
		}
	}
	if !test || !r.Filled() {
		q.StatsQuery, _ = a.statsQuery.contains(r.Packet.SenderT1)
		return q, why, q.StatsQuery
	}
	return q, why, q.Outstanding == nil && q.Seq < a.outstandingPackets.next
}

// RecentRequest reports whether a recent request has this number.
func (a *Account) RecentRequest(seq uint32) bool {
	return a.outstandingPackets.get(seqwin.Extend(a.outstandingPackets.next, seq)) != nil
}

// fresh reports whether the request was sent after the last reply of the reflector's current session arrived, and
// this is its first reply. A replayed reply of another session is never fresh.
func (a *Account) fresh(r *Reply, q Request) bool {
	if !q.StatsQuery {
		return q.first() && q.Outstanding.sent > a.remote.heard
	}
	_, last := a.statsQuery.contains(r.Packet.SenderT1)
	return last && a.statsQuery.heard != a.statsQuery.count
}

// take records the reply to a test packet. lost gives the directions whose delay exceeded the loss timeout;
// present: the reply is of the remote end's current session (packets of an earlier session were counted as lost in
// reverse when it ended). n is the reply's own number; only a first reply gives a sample.
func (a *Account) take(r *Reply, q Request, now time.Duration, lost [2]bool, present bool) (n uint64, verdict seqwin.Verdict, first bool) {
	first, verdict = q.first(), seqwin.Late
	switch {
	case present:
		n, verdict = a.number(&r.Packet, q, now, lost[sample.Reverse])
	case first && !r.Filled():
		verdict = a.otherNumber(r, q, lost[sample.Reverse])
	case first: // another copy may be recorded
		a.rev.ended.late++
		a.rev.now.late++
	}
	switch {
	case verdict == seqwin.Duplicate:
		return n, verdict, false
	case q.Outstanding == nil:
		a.Refuse(DiscardUnknownSequence, now) // no longer remembered
		return n, verdict, false
	case !first:
		return n, verdict, false
	}
	inTime := q.Outstanding.state == packetOutstanding
	a.reply(q)
	switch {
	case verdict != seqwin.Late:
		a.lastReply, a.awaited = now, now
	case inTime:
		a.refuse(DiscardWrongNumber, now)
	}
	switch {
	case !lost[sample.Forward] || !present || q.Seq < a.numbered.begin:
	case a.Kind == RemoteOurs && !r.Filled() && q.Seq >= a.remote.counts.Base && len(a.fault().unreported) < mostUnreported:
		f := a.fault()
		f.unreported = append(f.unreported, q.Seq)
	case !a.remoteLost(q.Seq):
		a.fwd.tooLate(q.Seq)
	}
	return n, verdict, true
}

// reply records the first reply to q, which is remembered.
func (a *Account) reply(q Request) {
	f := q.Outstanding
	if q.Seq < a.numbered.begin {
		a.numbered.before++
	}
	if f.state == packetOutstanding {
		a.outstandingPackets.reply(f, packetReplied)
		a.RoundTripsReceived++
		a.decided(Verdict{Kind: RoundTripsDecided, Losses: loss.Delta{Received: 1}})
		return
	}
	a.outstandingPackets.reply(f, packetRepliedLate)
	a.AnsweredLate++
}

// remoteLost reports whether the remote end itself counted number seq as lost, because higher numbers arrived more
// than a loss timeout before it. Of a number below the reported outcomes it reports whether it was decided before
// the newest Receipt, or that one counts a late packet: the arrival of a late packet may decide its number and many more.
func (a *Account) remoteLost(seq uint64) bool {
	c := &a.remote.counts
	if a.Kind != RemoteOurs || seq >= c.Base {
		return false
	}
	back := c.Base - 1 - seq
	if back >= 64*uint64(a.remote.words) {
		return seq < a.remote.decided || a.remote.late
	}
	return c.Recent[back/64]>>(back%64)&1 == 0
}

// expire applies the loss timeout at this end.
func (a *Account) expire(now time.Duration) {
	late := max(0, now-a.now-TickInterval)
	a.SetLate(a.late() + late)
	if a.now = max(a.now, now); late > TickInterval {
		a.awaited += late
	}
	a.lose(a.outstandingPackets.expire(now, a.opts.LossTimeout))
	if a.reverseOn {
		a.reverse.Expire(now, a.opts.LossTimeout)
		a.countReverse()
	}
	if a.ports().open > 0 && now-a.faults.ports.since > a.opts.LossTimeout+openTime {
		a.closePorts()
	}
	a.guessForward()
}

// guessForward derives the forward counts from a reflector other than ours. If it numbers its replies, a lost round
// trip whose reply was not lost in reverse was lost forward.
func (a *Account) guessForward() {
	f := &a.fwd.now
	switch a.Kind {
	case RemoteStateful:
	case RemoteStateless:
		if n := a.answered() - min(a.answered(), a.fwd.overdue); n > f.received {
			a.fwd.answered(n - f.received)
		}
		a.fwd.known = false
		if a.RoundTripsLost > 0 {
			a.fault().LowConfidence[LowConfidenceForeign] = a.RoundTripsLost
		}
		return
	default:
		return
	}
	c := a.reverse.Counts()
	decided, missing := a.numbered.settle(c.First, a.now, a.opts.LossTimeout)
	if a.guessable() {
		// Of the requests without a reply, those whose reply number is missing were lost in reverse. A late reply
		// counts as lost there although it is a reply.
		decided = a.outstandingPackets.next
		asked, answered := decided-a.numbered.begin, a.answered()-a.numbered.before
		unanswered := asked - min(asked, answered)
		missing = unanswered - min(unanswered, c.Lost-min(c.Lost, c.Late))
	}
	// Until a number differs from the sender's, its requests are counted as received from a stateless reflector.
	open := a.ports().open
	if n := f.accounted() + open; decided == 0 || decided < n || decided == n && a.fwd.known {
		return
	}
	a.fwd.known = true
	lost := max(f.lost, a.fwd.ended.lost+missing+a.fwd.overdue)
	received := max(f.received, decided-min(decided, lost+f.undecided+open))
	delta := loss.Delta{Lost: lost - f.lost, PatternLost: lost - f.lost, Unordered: lost - f.lost, Received: received - f.received}
	delta.Decided = delta.Lost + delta.Received
	a.fwd.decide(PacketsDecided, delta)
	f.lost, f.received = lost, received
}

// guessable reports whether the outcomes of all requests and replies are known. Those after the last reply are not
// until a higher number arrives.
func (a *Account) guessable() bool {
	c := a.reverse.Counts()
	if c.Pending() > 0 || a.outstandingPackets.outstanding() > 0 {
		return false
	}
	last := a.outstandingPackets.get(a.outstandingPackets.next - 1)
	return a.statsQuery.finished || last != nil && (last.state == packetReplied || last.state == packetRepliedLate)
}

// End concludes the waiting replies and closes the account. Packets still outstanding stay undecided: those that await a
// reply are not lost, and nobody will tell the direction of the lost ones.
func (a *Account) End() {
	a.Flush(math.MaxInt64)
	a.closePorts()
	if a.fwd.known {
		a.fwd.now.sent = a.outstandingPackets.next
		n := a.fwd.now.outstanding()
		a.undirected(LowConfidenceEnded, n-min(n, a.outstandingPackets.awaited()))
		a.fwd.undecide(n)
		a.rev.undecide(a.rev.now.outstanding())
	}
}

// Known is what is known about the directions of losses, and about the delays that follow.
type Known struct {
	// Directions reports for each direction whether its losses are distinguished from those of the other.
	Directions [2]bool
	// Waiting counts the replies whose true T3 is awaited: the estimator will get them.
	Waiting uint64
	// Undecided counts the lost round trips that neither a later reply nor the remote end's counts assign to a direction
	// so far: the last ones.
	Undecided uint64
	// Passed and Answered count test packets before the last reply, without and with a reply. The remote end was asked whether it
	// received them, and has not told.
	Passed, Answered uint64
}

// Known returns what is known about the directions of losses.
func (a *Account) Known() Known {
	k := Known{Directions: [2]bool{a.fwd.known, a.rev.known}, Waiting: uint64(len(a.replies.waiting))}
	told := uint64(0)
	switch {
	case a.statsQuery.finished:
		return k
	case a.Kind == RemoteOurs:
		told = a.remote.counts.Base
	case a.numbered.orders != nil && a.numbered.orders.newest.known:
		told = a.numbered.orders.newest.seq + 1
	}
	k.Undecided = a.outstandingPackets.unansweredSince(told)
	if a.Kind == RemoteOurs && a.statsQuery.finish {
		end := a.outstandingPackets.oldest
		k.Answered = a.outstandingPackets.answered(told, end)
		if a.faults != nil {
			k.Answered -= min(k.Answered, uint64(len(a.faults.unreported)))
		}
		k.Passed = end - min(end, told+k.Undecided+k.Answered)
	}
	return k
}

// A peer is up if it has replied within UpIntervals, and at least UpTime, and the waiting time.
const (
	UpIntervals = 3
	UpTime      = 3 * time.Second
)

// Up reports whether the peer replies; decided is false until enough time has passed, during which this host ran.
func (a *Account) Up() (up, decided bool) {
	in := a.now-a.awaited <= max(UpIntervals*a.opts.Interval, UpTime)+a.opts.LossTimeout
	if a.lastReply == 0 {
		return false, !in
	}
	return in, true
}

// heard measures the silence that ends with a reply: the missing replies may have been dropped at its beginning.
func (a *Account) heard(now time.Duration) {
	if c := a.reverse.Counts(); c.Pending() == 0 {
		a.silence = 0
	}
	a.silence = max(a.silence, now-a.order.at)
}

func (a *Account) late() time.Duration { return time.Duration(a.lateMillis) * time.Millisecond }

// SetLate takes how long after its time the present decision is taken; below zero is zero.
func (a *Account) SetLate(d time.Duration) {
	a.lateMillis = int32(min(max(d.Milliseconds(), 0), math.MaxInt32))
}

// droppedHere returns how many of the reverse losses decided now were dropped by this host's socket.
func (a *Account) droppedHere(lost uint64) uint64 {
	if a.dropped == nil || lost == 0 {
		return 0
	}
	return a.dropped(lost, a.opts.explains()+a.late()+a.silence)
}

// droppedThere is the same for forward losses and the remote end's socket, whose drops some replies and statistics
// replies report; the decision is taken when a.late has passed since now. The reply that decides the end of a run follows
// a loss timeout without replies: the last drops were reported before it.
func (a *Account) droppedThere(lost uint64, now time.Duration) uint64 {
	now += a.late()
	return a.remoteDrops.Take(lost, now, a.opts.explains()+a.late()+max(8*a.opts.Interval, a.silence, now-a.order.at))
}
