package stamp

import (
	"math"
	"time"

	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/seqwin"
	wire "oneway.example/exporter/wire/stamp"
)

// remoteKind is what the remote end turned out to be.
type remoteKind uint8

const (
	remoteUnknown   remoteKind = iota
	remoteOurs                 // fills in the Receipt: both directions are exact
	remoteStateful             // numbers its replies: losses can be told apart
	remoteStateless            // copies our number: they cannot
)

func (k remoteKind) String() string {
	return [...]string{"unknown", "oneway", "stateful", "stateless"}[k]
}

// tallies are counts that are told as they are.
type tallies struct {
	kind                               remoteKind
	lastSuccess                        time.Time // the zero Time: never
	roundTripsLost, roundTripsReceived uint64
	answeredLate                       uint64 // after the waiting time
	restarts                           uint64 // of the remote end
	discarded                          [discardReasons]uint64
	skipped                            [skipReasons]uint64
	lowConfidence                      [lowConfidenceReasons]uint64
	hops                               [2]hops // by direction
	marks                              [2]marks
}

// account counts what became of one session's packets in both directions. It knows no socket, and no
// delay: it tells the estimator how many packets were received and lost.
type account struct {
	opts *Options
	est  *estimator
	// dropped says how many of so many reverse losses, decided now, this host's socket has
	// dropped; nil: none.
	dropped func(lost uint64) uint64

	outstandingPackets outstandingPackets
	statsQuery         statisticsPoller
	remote             remote
	order              order
	numbered           numbered
	fwd, rev           counts
	// reverse is the window of the replies' numbers; reverseOn: it has been started; anew: by a reply whose
	// number began anew, and our reflector has told of no restart since.
	reverse         seqwin.Window
	reverseOn, anew bool
	// remoteDrops are those of the remote end's socket; remoteHost: it has told of them.
	remoteDrops drops
	remoteHost  bool
	told        toldMarks

	tallies

	now, started, lastReply time.Duration // monotonic; lastReply 0: never
	refused                 discardReason // the last one
	lastRefused             time.Duration // monotonic; 0: never
}

func newAccount(o *Options, est *estimator, now time.Duration) *account {
	a := &account{
		opts: o, est: est, outstandingPackets: newOutstandingPackets(o), now: now, started: now,
		fwd: counts{dir: sample.Forward, window: &est.ways[sample.Forward]},
		rev: counts{dir: sample.Reverse, window: &est.ways[sample.Reverse]},
	}
	a.outstandingPackets.lose = est.recordLost
	a.reserve()
	return a
}

// reserve makes space for the replies of the waiting time, twice as many for Poisson's sake.
func (a *account) reserve() { a.reverse.Reserve(2 * int(a.opts.LossTimeout/a.opts.Interval)) }

// refuse counts what came and is no reply to this session's requests.
func (a *account) refuse(why discardReason, now time.Duration) {
	a.discarded[why]++
	a.refused, a.lastRefused = why, now
}

// lose counts round trips that nobody answered in time.
func (a *account) lose(n int) {
	a.roundTripsLost += uint64(n)
	a.est.times.Decided(0, n)
}

// answered counts first replies, whenever they came.
func (a *account) answered() uint64 { return a.roundTripsReceived + a.answeredLate }

// request is what a reply says that it answers.
type request struct {
	statsQuery bool
	seq        uint64
	// outstanding is what is known of test packet seq; nil: it is forgotten.
	outstanding *outstanding
}

func (q *request) forgotten() bool { return !q.statsQuery && q.outstanding == nil }

// first: no reply to it has come before.
func (q *request) first() bool { return q.outstanding != nil && q.outstanding.unheard() }

// asked finds the request by its number and its time, which is known to nobody but this host and who
// has seen the packet. What answers nothing that was asked moves nothing. Of the reply to a request
// that is forgotten, the random Run in our reflector's Receipt tells that it is of this session.
func (a *account) asked(r *reply) (q request, why discardReason, ok bool) {
	test := !r.filled() || !r.receipt.StatsQuery
	if test {
		q.seq = seqwin.Extend(a.outstandingPackets.next, r.packet.SenderSeq)
		q.outstanding = a.outstandingPackets.get(q.seq)
		why = discardUnknownSequence
		if q.outstanding != nil {
			why = discardBadEcho
			if r.packet.SenderT1 == a.opts.encode(q.outstanding.user) {
				return q, 0, true
			}
		}
	}
	if !test || !r.filled() {
		q.statsQuery, _ = a.statsQuery.knows(r.packet.SenderT1)
		return q, why, q.statsQuery
	}
	return q, why, q.outstanding == nil && q.seq < a.outstandingPackets.next
}

// fresh tells whether the request was asked after the last reply of the reflector's present life had
// come, and this is its first reply: so no replayed answer of another life is.
func (a *account) fresh(r *reply, q request) bool {
	if !q.statsQuery {
		return q.first() && q.outstanding.sent > a.remote.heard
	}
	_, last := a.statsQuery.knows(r.packet.SenderT1)
	return last && a.statsQuery.heard != a.statsQuery.count
}

// take takes the reply to a test packet; lost says in which directions it took longer than the waiting
// time, present that it is of the present life of the remote end's session: those of a former one were lost in
// reverse when that ended. n is its own number; only of a first reply a sample can be made.
func (a *account) take(p *wire.ReflectorPacket, q request, now time.Duration, lost [2]bool, present bool) (n uint64, verdict seqwin.Verdict, first bool) {
	first, verdict = q.first(), seqwin.Late
	switch {
	case present:
		n, verdict = a.number(p, q, now, lost[sample.Reverse])
	case first: // another one may be recorded
		a.rev.ended.late++
		a.rev.now.late++
	}
	switch {
	case verdict == seqwin.Duplicate:
		return n, verdict, false
	case q.outstanding == nil:
		a.refuse(discardUnknownSequence, now) // forgotten long ago
		return n, verdict, false
	case !first:
		a.numbered.again++
		return n, verdict, false
	}
	inTime := q.outstanding.state == packetOutstanding
	a.reply(q.outstanding)
	switch {
	case verdict != seqwin.Late:
		a.lastReply = now
	case inTime:
		a.refused, a.lastRefused = discardWrongNumber, now
	}
	if lost[sample.Forward] && present && q.seq >= a.numbered.begin && !a.remoteLost(q.seq) {
		a.fwd.tooLate(q.seq)
	}
	return n, verdict, true
}

// reply takes the first reply to f.
func (a *account) reply(f *outstanding) {
	if f.seq < a.numbered.begin {
		a.numbered.before++
	}
	if f.state == packetOutstanding {
		a.outstandingPackets.reply(f, packetReplied)
		a.roundTripsReceived++
		a.est.times.Decided(1, 0)
		return
	}
	a.outstandingPackets.reply(f, packetRepliedLate)
	a.answeredLate++
}

// remoteLost tells whether the remote end itself has counted number seq as lost, because higher
// ones had come a waiting time before it. Of a number far below its last one it does not tell:
// then it had decided that number before, or it had not.
func (a *account) remoteLost(seq uint64) bool {
	c := &a.remote.counts
	if a.kind != remoteOurs || seq >= c.Base {
		return false
	}
	back := c.Base - 1 - seq
	if back >= uint64(64*a.remote.words) {
		return seq < a.remote.decided
	}
	return c.Recent[back/64]>>(back%64)&1 == 0
}

// expire applies the loss timeout on this side.
func (a *account) expire(now time.Duration) {
	a.now = now
	a.lose(a.outstandingPackets.expire(now, a.opts.LossTimeout))
	if a.reverseOn {
		a.reverse.Expire(now, a.opts.LossTimeout)
		a.countReverse()
	}
	a.guessForward()
}

// guessForward draws from a foreign reflector what can be known of the forward
// direction: with its own numbering, a round trip that was lost and whose
// reply was not lost on the way back was lost on the way there.
func (a *account) guessForward() {
	f := &a.fwd.now
	switch a.kind {
	case remoteStateful:
	case remoteStateless:
		f.received = a.answered() - min(a.answered(), a.fwd.overdue)
		a.fwd.known, a.rev.known = false, false
		a.lowConfidence[lowConfidenceForeign] = a.roundTripsLost
		return
	default:
		return
	}
	c := a.reverse.Counts()
	decided, missing := a.numbered.settle(c.First, a.now, a.opts.LossTimeout)
	if a.guessable() {
		// Of those that nobody answered, what is missing of the replies was lost in reverse. A
		// late answer counts as lost there and is a reply all the same.
		decided = a.outstandingPackets.next
		asked, answered := decided-a.numbered.begin, a.answered()-a.numbered.before
		unanswered := asked - min(asked, answered)
		missing = unanswered - min(unanswered, c.Lost-min(c.Lost, c.Late))
	}
	if decided <= f.lost+f.received {
		return
	}
	a.fwd.known = true
	lost := max(f.lost, a.fwd.ended.lost+missing+a.fwd.overdue)
	received := max(f.received, decided-min(decided, lost))
	delta := loss.Delta{Lost: lost - f.lost, PatternLost: lost - f.lost, Unordered: lost - f.lost, Received: received - f.received}
	delta.Decided = delta.Lost + delta.Received
	a.fwd.window.decided(delta)
	f.lost, f.received = lost, received
}

// guessable: the outcome of every request and of every reply is known. Those
// after the last reply are not until a later number has been heard.
func (a *account) guessable() bool {
	c := a.reverse.Counts()
	if c.Pending() > 0 || a.outstandingPackets.outstanding() > 0 {
		return false
	}
	last := a.outstandingPackets.get(a.outstandingPackets.next - 1)
	return a.statsQuery.finished || last != nil && (last.state == packetReplied || last.state == packetRepliedLate)
}

// end closes the account: what is still outstanding will never be known.
func (a *account) end() {
	a.outstandingPackets.lose = nil // nor is it known to be lost
	a.lose(a.outstandingPackets.expire(math.MaxInt64, 0))
	if a.fwd.known {
		a.fwd.now.sent = a.outstandingPackets.next
		a.lowConfidence[lowConfidenceEnded] += a.fwd.now.outstanding()
		a.fwd.now.lost += a.fwd.now.outstanding()
		a.rev.now.lost += a.rev.now.outstanding()
	}
}

// known says of which directions the losses are told from those of the other.
func (a *account) known() [2]bool { return [...]bool{a.fwd.known, a.rev.known} }

// up reports whether the peer answers; decided is false while there has been
// too little time to tell.
func (a *account) up() (up, decided bool) {
	timeout := max(3*a.opts.Interval, 3*time.Second) + a.opts.LossTimeout
	if a.lastReply == 0 {
		return false, a.now-a.started > timeout
	}
	return a.now-a.lastReply <= timeout, true
}

// droppedHere says how many of the reverse losses decided now this host's socket has
// dropped.
func (a *account) droppedHere(lost uint64) uint64 {
	if a.dropped == nil || lost == 0 {
		return 0
	}
	return a.dropped(lost)
}

// droppedThere says so of the forward losses and the remote end's socket, which a reply now and
// then tells of, or a query's.
func (a *account) droppedThere(lost uint64) uint64 {
	return a.remoteDrops.take(lost, sched.Now(), a.opts.explains()+max(8*a.opts.Interval, 2*time.Second))
}
