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

// farKind is what the far end turned out to be.
type farKind uint8

const (
	farUnknown   farKind = iota
	farOurs              // fills in the Receipt: both directions are exact
	farStateful          // numbers its answers: losses can be told apart
	farStateless         // copies our number: they cannot
)

func (k farKind) String() string {
	return [...]string{"unknown", "oneway", "stateful", "stateless"}[k]
}

// tallies are counts that are told as they are.
type tallies struct {
	kind                               farKind
	lastSuccess                        time.Time // the zero Time: never
	roundTripsLost, roundTripsReceived uint64
	answeredLate                       uint64 // after the waiting time
	restarts                           uint64 // of the far end
	discarded                          [discardReasons]uint64
	skipped                            [skipReasons]uint64
	unsure                             [unsureReasons]uint64
	hops                               [2]hops // by direction
}

// account counts what became of one session's packets in both directions. It knows no socket, and no
// delay: it tells the estimator how many packets were received and lost.
type account struct {
	opts *Options
	est  *estimator
	// dropped says how many of so many reverse losses, decided now, this host's socket has
	// dropped; nil: none.
	dropped func(lost uint64) uint64

	flights  flights
	query    querier
	remote   remote
	order    order
	numbered numbered
	fwd, rev counts
	// reverse is the window of the answers' numbers; reverseOn: it has been started; anew: by an answer whose
	// number began anew, and our reflector has told of no restart since.
	reverse         seqwin.Window
	reverseOn, anew bool
	// farDrops are those of the far end's socket; farHost: it has told of them.
	farDrops drops
	farHost  bool

	tallies

	now, started, lastAnswer time.Duration // monotonic; lastAnswer 0: never
	refused                  discardReason // the last one
	lastRefused              time.Duration // monotonic; 0: never
}

func newAccount(o *Options, est *estimator, now time.Duration) *account {
	a := &account{
		opts: o, est: est, flights: newFlights(o), now: now, started: now,
		fwd: counts{dir: sample.Forward, window: &est.ways[sample.Forward]},
		rev: counts{dir: sample.Reverse, window: &est.ways[sample.Reverse]},
	}
	a.flights.lose = est.recordLost
	a.reserve()
	return a
}

// reserve makes room for the answers of the waiting time, twice as many for Poisson's sake.
func (a *account) reserve() { a.reverse.Reserve(2 * int(a.opts.LossTimeout/a.opts.Interval)) }

// refuse counts what came and is no answer to this session's questions.
func (a *account) refuse(why discardReason, now time.Duration) {
	a.discarded[why]++
	a.refused, a.lastRefused = why, now
}

// lose counts round trips that nobody answered in time.
func (a *account) lose(n int) {
	a.roundTripsLost += uint64(n)
	a.est.times.Decided(0, n)
}

// answered counts first answers, whenever they came.
func (a *account) answered() uint64 { return a.roundTripsReceived + a.answeredLate }

// question is what an answer says that it answers.
type question struct {
	query bool
	seq   uint64
	// flight is what is known of test packet seq; nil: it is forgotten.
	flight *flight
}

func (q *question) forgotten() bool { return !q.query && q.flight == nil }

// first: no answer to it has come before.
func (q *question) first() bool { return q.flight != nil && q.flight.unheard() }

// asked finds the question by its number and its time, which is known to nobody but this host and who
// has seen the packet. What answers nothing that was asked moves nothing. Of the answer to a question
// that is forgotten, the random Run in our reflector's Receipt tells that it is of this session.
func (a *account) asked(r *reply) (q question, why discardReason, ok bool) {
	test := !r.filled() || !r.receipt.Query
	if test {
		q.seq = seqwin.Extend(a.flights.next, r.packet.SenderSeq)
		q.flight = a.flights.get(q.seq)
		why = discardUnknownSequence
		if q.flight != nil {
			why = discardBadEcho
			if r.packet.SenderT1 == a.opts.encode(q.flight.user) {
				return q, 0, true
			}
		}
	}
	if !test || !r.filled() {
		q.query, _ = a.query.knows(r.packet.SenderT1)
		return q, why, q.query
	}
	return q, why, q.flight == nil && q.seq < a.flights.next
}

// fresh tells whether the question was asked after the last answer of the reflector's present life had
// come, and this is its first answer: so no replayed answer of another life is.
func (a *account) fresh(r *reply, q question) bool {
	if !q.query {
		return q.first() && q.flight.sent > a.remote.heard
	}
	_, last := a.query.knows(r.packet.SenderT1)
	return last && a.query.heard != a.query.count
}

// take takes the answer to a test packet; lost says in which directions it took longer than the waiting
// time, present that it is of the present life of the far end's session: those of a former one were lost in
// reverse when that ended. n is its own number; only of a first answer a sample can be made.
func (a *account) take(p *wire.ReflectorPacket, q question, now time.Duration, lost [2]bool, present bool) (n uint64, verdict seqwin.Verdict, first bool) {
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
	case q.flight == nil:
		a.refuse(discardUnknownSequence, now) // forgotten long ago
		return n, verdict, false
	case !first:
		a.numbered.again++
		return n, verdict, false
	}
	inTime := q.flight.state == flightOut
	a.answer(q.flight)
	switch {
	case verdict != seqwin.Late:
		a.lastAnswer = now
	case inTime:
		a.refused, a.lastRefused = discardWrongNumber, now
	}
	if lost[sample.Forward] && present && q.seq >= a.numbered.begin && !a.farLost(q.seq) {
		a.fwd.tooLate(q.seq)
	}
	return n, verdict, true
}

// answer takes the first answer to f.
func (a *account) answer(f *flight) {
	if f.seq < a.numbered.begin {
		a.numbered.before++
	}
	if f.state == flightOut {
		a.flights.answer(f, flightAnswered)
		a.roundTripsReceived++
		a.est.times.Decided(1, 0)
		return
	}
	a.flights.answer(f, flightAnsweredLate)
	a.answeredLate++
}

// farLost tells whether the far end itself has counted number seq as lost, because higher
// ones had come a waiting time before it. Of a number far below its last one it does not tell:
// then it had decided that number before, or it had not.
func (a *account) farLost(seq uint64) bool {
	c := &a.remote.counts
	if a.kind != farOurs || seq >= c.Base {
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
	a.lose(a.flights.expire(now, a.opts.LossTimeout))
	if a.reverseOn {
		a.reverse.Expire(now, a.opts.LossTimeout)
		a.countReverse()
	}
	a.guessForward()
}

// guessForward draws from a foreign reflector what can be known of the forward
// direction: with its own numbering, a round trip that was lost and whose
// answer was not lost on the way back was lost on the way there.
func (a *account) guessForward() {
	f := &a.fwd.now
	switch a.kind {
	case farStateful:
	case farStateless:
		f.received = a.answered() - min(a.answered(), a.fwd.overdue)
		a.fwd.known, a.rev.known = false, false
		a.unsure[unsureForeign] = a.roundTripsLost
		return
	default:
		return
	}
	c := a.reverse.Counts()
	decided, missing := a.numbered.settle(c.First, a.now, a.opts.LossTimeout)
	if a.guessable() {
		// Of those that nobody answered, what is missing of the answers was lost in reverse. A
		// late answer counts as lost there and is an answer all the same.
		decided = a.flights.next
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

// guessable: the fate of every question and of every answer is known. Those
// after the last answer are not until a later number has been heard.
func (a *account) guessable() bool {
	c := a.reverse.Counts()
	if c.Pending() > 0 || a.flights.outstanding() > 0 {
		return false
	}
	last := a.flights.get(a.flights.next - 1)
	return a.query.finished || last != nil && (last.state == flightAnswered || last.state == flightAnsweredLate)
}

// end closes the account: what is still in flight will never be known.
func (a *account) end() {
	a.flights.lose = nil // nor is it known to be lost
	a.lose(a.flights.expire(math.MaxInt64, 0))
	if a.fwd.known {
		a.fwd.now.sent = a.flights.next
		a.unsure[unsureEnded] += a.fwd.now.inFlight()
		a.fwd.now.lost += a.fwd.now.inFlight()
		a.rev.now.lost += a.rev.now.inFlight()
	}
}

// known says of which directions the losses are told from those of the other.
func (a *account) known() [2]bool { return [...]bool{a.fwd.known, a.rev.known} }

// up reports whether the peer answers; decided is false while there has been
// too little time to tell.
func (a *account) up() (up, decided bool) {
	patience := max(3*a.opts.Interval, 3*time.Second) + a.opts.LossTimeout
	if a.lastAnswer == 0 {
		return false, a.now-a.started > patience
	}
	return a.now-a.lastAnswer <= patience, true
}

// droppedHere says how many of the reverse losses decided now this host's socket has
// dropped.
func (a *account) droppedHere(lost uint64) uint64 {
	if a.dropped == nil || lost == 0 {
		return 0
	}
	return a.dropped(lost)
}

// droppedThere says so of the forward losses and the far end's socket, which an answer now and
// then tells of, or a query's.
func (a *account) droppedThere(lost uint64) uint64 {
	return a.farDrops.take(lost, sched.Now(), a.opts.explains()+max(8*a.opts.Interval, 2*time.Second))
}
