package stamp

import (
	"time"

	"oneway.example/exporter/seqwin"
	wire "oneway.example/exporter/wire/stamp"
)

// number finds the answer's own number and what the reverse window says of it. An answer whose number
// cannot be is late: it tells of the question, and moves nothing.
func (a *account) number(p *wire.ReflectorPacket, q question, now time.Duration, overdue bool) (uint64, seqwin.Verdict) {
	if !a.reverseOn {
		a.beginReverse(a.firstNumber(uint64(p.Seq)), now)
	}
	a.reverse.Expire(now, a.opts.LossTimeout)
	n := seqwin.Extend(a.reverse.Counts().Next, p.Seq)
	first := q.first()
	switch where := a.order.judge(n, a.questions(), first && q.flight.sent > a.order.at, a.kind == farOurs); {
	case where == placeAnew:
		n = uint64(p.Seq)
		if a.kind != farOurs {
			a.endLife(q.seq)
		}
		a.renumber(n, now)
		a.anew = true
	case where == placeRefused, first && a.reverse.Seen(n): // that one was another question's
		a.discarded[discardWrongNumber]++
		return n, seqwin.Late
	}
	switch {
	case a.kind == farOurs:
	case p.Seq != p.SenderSeq:
		a.kind = farStateful
	case a.kind == farUnknown:
		a.kind = farStateless
	}
	verdict := seqwin.Late
	if overdue {
		if a.reverse.AddOverdue(n, now) == seqwin.Duplicate {
			verdict = seqwin.Duplicate
		}
	} else {
		verdict = a.reverse.Add(n, now)
	}
	unheard := a.flights.unheard
	if first {
		unheard--
	}
	a.order.take(n, a.questions(), unheard, now)
	if a.kind == farStateful && verdict != seqwin.Duplicate {
		a.numbered.add(q.seq, n, now)
	}
	a.countReverse()
	return n, verdict
}

// questions counts test packets and queries.
func (a *account) questions() uint64 { return a.flights.next + uint64(a.query.count) }

func (a *account) beginReverse(first uint64, now time.Duration) {
	a.reverse.Start(first)
	a.order.begin(first, now)
	a.reverseOn = true
}

// firstNumber is that of the first answer to a test packet, if one numbered n is the first that
// is heard.
func (a *account) firstNumber(n uint64) uint64 {
	if begin := a.query.begin; begin > 0 && begin <= n && n-begin <= 2*a.questions() {
		return begin
	}
	return n
}

func (a *account) countReverse() {
	c := a.reverse.Counts()
	a.rev.count(c, seqwin.RecentBits, a.droppedHere)
	sent := c.Next - c.First
	if a.kind == farOurs && a.order.fits(a.remote.tx, a.questions()) {
		sent = max(sent, a.remote.tx-min(a.remote.tx, c.First))
	}
	a.rev.now.sent = a.rev.ended.sent + sent
}

// agreeing is how many refused answers in a row have to go on from each other until the far
// end's numbers are taken to begin anew.
const agreeing = 3

// order judges the numbers of answers before they move the reverse window. A far end gives
// numbers to what it answers, so that there are no more of them than questions; and a question that
// was sent after an answer had come gets a higher number than that one.
type order struct {
	// next is the highest number taken plus one; it was taken at that time (monotonic).
	next uint64
	at   time.Duration
	// spent is how many questions had been answered, or forgotten, by then.
	spent uint64
	// refused answers came in a row, the last of them numbered last.
	refused int
	last    uint64
}

// place is what the number of an answer is taken for.
type place uint8

const (
	placeFits    place = iota
	placeRefused       // nobody can have counted so far
	placeAnew          // the far end's numbers begin anew
)

// begin makes first the first number, of a window that begins at now.
func (o *order) begin(first uint64, now time.Duration) {
	o.next, o.at, o.refused = first, now, 0
}

// fits tells whether number n may be one of asked questions: each of those that have no answer
// may have arrived twice.
func (o *order) fits(n, asked uint64) bool { return n < o.next || n-o.next <= 2*(asked-o.spent) }

// judge takes number n of an answer to one of asked questions. later: it was sent after the
// highest number had come, and this is its first answer. Where restarts are told
// by other means (told), a lower number proves none.
func (o *order) judge(n, asked uint64, later, told bool) place {
	behind := n < o.next
	switch {
	case behind && !later, !behind && o.fits(n, asked):
		return placeFits
	case !later:
		return placeRefused
	case behind && !told:
		return placeAnew
	}
	if n <= o.last {
		o.refused = 0
	}
	o.last = n
	if o.refused++; o.refused < agreeing {
		return placeRefused
	}
	return placeAnew
}

// take notes that number n is in the window; of the asked questions so many are unheard of.
func (o *order) take(n, asked, unheard uint64, now time.Duration) {
	if n >= o.next {
		*o = order{next: n + 1, at: now, spent: asked - unheard}
	}
}

// numbered tells from the numbers of a foreign reflector's own answers how many questions had
// reached it. The question that got answer n was the (n - first + 1)th one that it received;
// those before it that come later have overtaken nobody: they get higher numbers.
type numbered struct {
	// newest is the question with the highest number of those answered in order, settling one
	// that is looked at once the waiting time is over.
	newest, settling answered
	// again are further answers to a question that was answered before: it was duplicated.
	again uint64
	// begin is the first question of the reflector's present life; before counts first answers to the
	// questions before it.
	begin, before uint64
}

// answered is a question and the number of its answer.
type answered struct {
	seq, n uint64
	at     time.Duration
	known  bool
	// behind are questions before it that were answered after it.
	behind uint64
}

// add takes the first answer to question seq, numbered n.
func (a *numbered) add(seq, n uint64, now time.Duration) {
	if seq < a.begin {
		a.again++ // it is booked already
		return
	}
	for _, p := range [...]*answered{&a.newest, &a.settling} {
		if p.known && seq < p.seq && n > p.n {
			p.behind++
		}
	}
	if p := &a.newest; !p.known || seq > p.seq && n > p.n {
		*p = answered{seq: seq, n: n, at: now, known: true}
	}
}

// settle says up to which question it is known whether they were received, and how many from begin on
// were not; zero: of none. The reflector's numbers begin with first.
func (a *numbered) settle(first uint64, now, wait time.Duration) (decided, missing uint64) {
	p := &a.settling
	if !p.known || now-p.at <= wait {
		if !p.known {
			*p = a.newest
		}
		return 0, 0
	}
	decided = p.seq + 1
	received := p.n + 1 + p.behind - min(p.n+1+p.behind, first+a.again)
	*p = answered{}
	return decided, decided - a.begin - min(decided-a.begin, received)
}
