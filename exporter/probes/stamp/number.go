package stamp

import (
	"time"

	"oneway.example/exporter/seqwin"
	wire "oneway.example/exporter/wire/stamp"
)

// number finds the reply's own number and what the reverse window says of it. A reply whose number
// cannot be is late: it tells of the request, and moves nothing.
func (a *account) number(p *wire.ReflectorPacket, q request, now time.Duration, overdue bool) (uint64, seqwin.Verdict) {
	if !a.reverseOn {
		a.beginReverse(a.firstNumber(uint64(p.Seq)), now)
	}
	a.reverse.Expire(now, a.opts.LossTimeout)
	n := seqwin.Extend(a.reverse.Counts().Next, p.Seq)
	first := q.first()
	switch where := a.order.judge(n, a.requests(), first && q.outstanding.sent > a.order.at, a.kind == remoteOurs); {
	case where == placeAnew:
		n = uint64(p.Seq)
		if a.kind != remoteOurs {
			a.endLife(q.seq)
		}
		a.renumber(n, now)
		a.anew = true
	case where == placeRefused, first && a.reverse.Seen(n): // that one was another request's
		a.discarded[discardWrongNumber]++
		return n, seqwin.Late
	}
	switch {
	case a.kind == remoteOurs:
	case p.Seq != p.SenderSeq:
		a.kind = remoteStateful
	case a.kind == remoteUnknown:
		a.kind = remoteStateless
	}
	verdict := seqwin.Late
	if overdue {
		if a.reverse.AddOverdue(n, now) == seqwin.Duplicate {
			verdict = seqwin.Duplicate
		}
	} else {
		verdict = a.reverse.Add(n, now)
	}
	unheard := a.outstandingPackets.unheard
	if first {
		unheard--
	}
	a.order.take(n, a.requests(), unheard, now)
	if a.kind == remoteStateful && verdict != seqwin.Duplicate {
		a.numbered.add(q.seq, n, now)
	}
	a.countReverse()
	return n, verdict
}

// requests counts test packets and queries.
func (a *account) requests() uint64 { return a.outstandingPackets.next + uint64(a.statsQuery.count) }

func (a *account) beginReverse(first uint64, now time.Duration) {
	a.reverse.Start(first)
	a.order.begin(first, now)
	a.reverseOn = true
}

// firstNumber is that of the first reply to a test packet, if one numbered n is the first that
// is heard.
func (a *account) firstNumber(n uint64) uint64 {
	if begin := a.statsQuery.begin; begin > 0 && begin <= n && n-begin <= 2*a.requests() {
		return begin
	}
	return n
}

func (a *account) countReverse() {
	c := a.reverse.Counts()
	a.rev.count(c, seqwin.RecentBits, a.droppedHere)
	sent := c.Next - c.First
	if a.kind == remoteOurs && a.order.fits(a.remote.tx, a.requests()) {
		sent = max(sent, a.remote.tx-min(a.remote.tx, c.First))
	}
	a.rev.now.sent = a.rev.ended.sent + sent
}

// agreeing is how many refused answers in a row have to go on from each other until the remote
// end's numbers are taken to begin anew.
const agreeing = 3

// order judges the numbers of replies before they move the reverse window. A remote end gives
// numbers to what it answers, so that there are no more of them than requests; and a request that
// was sent after a reply had come gets a higher number than that one.
type order struct {
	// next is the highest number taken plus one; it was taken at that time (monotonic).
	next uint64
	at   time.Duration
	// spent is how many requests had been answered, or forgotten, by then.
	spent uint64
	// refused answers came in a row, the last of them numbered last.
	refused int
	last    uint64
}

// place is what the number of a reply is taken for.
type place uint8

const (
	placeFits    place = iota
	placeRefused       // nobody can have counted so far
	placeAnew          // the remote end's numbers begin anew
)

// begin makes first the first number, of a window that begins at now.
func (o *order) begin(first uint64, now time.Duration) {
	o.next, o.at, o.refused = first, now, 0
}

// fits tells whether number n may be one of asked requests: each of those that have no reply
// may have arrived twice.
func (o *order) fits(n, asked uint64) bool { return n < o.next || n-o.next <= 2*(asked-o.spent) }

// judge takes number n of a reply to one of asked requests. later: it was sent after the
// highest number had come, and this is its first reply. Where restarts are told
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

// take notes that number n is in the window; of the asked requests so many are unheard of.
func (o *order) take(n, asked, unheard uint64, now time.Duration) {
	if n >= o.next {
		*o = order{next: n + 1, at: now, spent: asked - unheard}
	}
}

// numbered tells from the numbers of a foreign reflector's own answers how many requests had
// reached it. The request that got answer n was the (n - first + 1)th one that it received;
// those before it that come later have overtaken nobody: they get higher numbers.
type numbered struct {
	// newest is the request with the highest number of those answered in order, settling one
	// that is looked at once the waiting time is over.
	newest, settling answered
	// again are further answers to a request that was answered before: it was duplicated.
	again uint64
	// begin is the first request of the reflector's present life; before counts first replies to the
	// requests before it.
	begin, before uint64
}

// answered is a request and the number of its reply.
type answered struct {
	seq, n uint64
	at     time.Duration
	known  bool
	// behind are requests before it that were answered after it.
	behind uint64
}

// add takes the first reply to request seq, numbered n.
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

// settle says up to which request it is known whether they were received, and how many from begin on
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
