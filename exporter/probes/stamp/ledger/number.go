package ledger

import (
	"time"

	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/wire/stampfmt"
)

// number returns the reply's own number and the verdict of the reverse window on it. A reply with an impossible
// number is late: its request counts as answered, and the window does not change.
func (a *Account) number(p *stampfmt.ReflectorPacket, q Request, now time.Duration, overdue bool) (uint64, seqwin.Verdict) {
	if !a.reverseOn {
		a.beginReverse(a.firstNumber(uint64(p.Seq)), now)
	}
	a.reverse.Expire(now, a.opts.LossTimeout)
	a.heard(now)
	n := seqwin.Extend(a.reverse.Counts().Next, p.Seq)
	first := q.first()
	switch where := a.order.judge(n, a.requests(), first && q.Outstanding.sent > a.order.at, a.Kind == RemoteOurs); {
	case where == placeRestarted:
		n = uint64(p.Seq)
		if a.Kind != RemoteOurs {
			a.endLife(q.Seq, func(unknown uint64) {
				a.undirected(LowConfidenceRemoteRestart, unknown)
				a.fwd.undecide(unknown)
			})
		}
		a.renumber(n, now)
		a.renumbered = true
		a.order.explain(mostMissing)
	case where == placeRefused, first && a.reverse.Seen(n): // the number is of a reply to another request
		a.discard(DiscardWrongNumber)
		return n, seqwin.Late
	}
	switch {
	case a.Kind == RemoteOurs:
	case p.Seq != p.SenderSeq:
		a.Kind = RemoteStateful
	case a.Kind == RemoteUnknown:
		a.Kind = RemoteStateless
	}
	verdict := seqwin.Late
	if overdue {
		if a.reverse.AddOverdue(n, now) == seqwin.Duplicate {
			verdict = seqwin.Duplicate
		}
	} else {
		verdict = a.reverse.Add(n, now)
	}
	unheard := uint64(a.outstandingPackets.unheard)
	if first {
		unheard--
	}
	a.order.take(n, a.requests(), unheard, now)
	if verdict != seqwin.Duplicate {
		a.numberRequest(q, n, now)
	}
	a.countReverse()
	return n, verdict
}

// numberRequest takes the accepted number of a reply to a request. Only another number of the same request shows that the path has
// duplicated the request: replies whose numbers were refused, such as forged ones, show nothing.
func (a *Account) numberRequest(q Request, n uint64, now time.Duration) {
	again := q.Outstanding != nil && q.Outstanding.numbered
	if again {
		a.order.explain(copyExplains)
	}
	if q.Outstanding != nil {
		q.Outstanding.numbered = true
	}
	if a.Kind == RemoteStateful {
		a.numbered.add(q.Seq, n, again, now)
	}
}

// requests counts test packets and statistics queries.
func (a *Account) requests() uint64 { return a.outstandingPackets.next + uint64(a.statsQuery.count) }

func (a *Account) beginReverse(first uint64, now time.Duration) {
	a.reverse.Start(first)
	a.order.begin(first, now)
	a.reverseOn = true
}

// firstNumber returns the number of the first reply to a test packet, given that n is the first one received.
func (a *Account) firstNumber(n uint64) uint64 {
	if begin := a.statsQuery.begin; begin > 0 && begin <= n && n-begin <= 2*a.requests() {
		return begin
	}
	return n
}

func (a *Account) countReverse() {
	c := a.reverse.Counts()
	a.rev.count(c, seqwin.RecentBits, a.droppedHere)
	a.rev.known = a.Kind != RemoteStateless
	sent := c.Next - c.First
	if a.Kind == RemoteOurs && a.order.fits(a.remote.tx, a.requests()) {
		sent = max(sent, a.remote.tx-min(a.remote.tx, c.First))
	}
	a.rev.now.sent = a.rev.ended.sent + sent
}

// agreeing is how many refused replies in a row must continue each other before the remote end's numbers are taken
// to begin anew.
const agreeing = 3

// order checks the numbers of replies before the reverse window takes them. A remote end numbers its replies, so
// there are no more numbers than requests; and the reply to a request that was sent after a reply arrived has a
// higher number than that reply.
type order struct {
	// next is the highest accepted number plus one; it was accepted at that time (monotonic).
	next uint64
	at   time.Duration
	// spent is how many requests had a reply, or were given up, by then.
	spent uint64
	// refused replies arrived in a row, the last one numbered last.
	last    uint32 // its low bits
	refused uint8
	// excess is how many more numbers than requests there were, less what explains them: see unshare.
	excess int16
	// seq and n are the low bits of the request and of the number of the last first reply.
	seq, n uint32
}

// place is the classification of a reply's number.
type place uint8

const (
	placeFits      place = iota
	placeRefused         // no remote end can have counted so far
	placeRestarted       // the remote end's numbers begin anew
)

// begin makes first the first number, of a window that begins at now.
func (o *order) begin(first uint64, now time.Duration) {
	o.next, o.at, o.refused = first, now, 0
}

// fits reports whether number n is possible after asked requests: each request without a reply may have arrived
// twice.
func (o *order) fits(n, asked uint64) bool { return n < o.next || n-o.next <= 2*(asked-o.spent) }

// judge classifies number n of a reply to one of asked requests. later: the request was sent after the highest
// number arrived, and this is its first reply. If reported, restarts are reported by other means, and a lower
// number does not prove one.
func (o *order) judge(n, asked uint64, later, reported bool) place {
	behind := n < o.next
	switch {
	case behind && !later, !behind && o.fits(n, asked):
		return placeFits
	case !later:
		return placeRefused
	case behind && !reported:
		return placeRestarted
	}
	if int32(uint32(n)-o.last) <= 0 {
		o.refused = 0
	}
	o.last = uint32(n)
	if o.refused++; o.refused < agreeing {
		return placeRefused
	}
	return placeRestarted
}

// take records that the window accepted number n; unheard of the asked requests have no reply yet.
func (o *order) take(n, asked, unheard uint64, now time.Duration) {
	if n >= o.next {
		o.next, o.at, o.spent, o.last, o.refused = n+1, now, asked-unheard, 0, 0
	}
}

// numbered derives from the numbers of a foreign reflector's replies how many requests it received. The request
// whose reply has number n was the (n - first + 1)th one that it received; earlier requests that arrive later get
// higher numbers.
type numbered struct {
	orders *orders // nil: no reply of a foreign reflector that numbers them
	// begin is the first request of the reflector's current session; before counts first replies to earlier
	// requests.
	begin, before uint64
}

// orders are requests with which others are compared.
type orders struct {
	// newest is the request with the highest number of those answered in order, settling one that is checked after
	// the loss timeout.
	newest, settling answered
	// again counts further numbers of a request: the request was duplicated. top is the highest of them.
	again, top uint64
}

// answered is a request and the number of its reply.
type answered struct {
	seq, n uint64
	at     time.Duration
	known  bool
	// behind counts earlier requests that were answered after this one, again the lower numbers that were further ones of a request.
	behind, again uint64
}

// add takes a reply to request seq, numbered n; again: another reply to it had another number.
func (a *numbered) add(seq, n uint64, again bool, now time.Duration) {
	if a.orders == nil {
		a.orders = new(orders)
	}
	o := a.orders
	if again || seq < a.begin { // the latter was counted before
		o.duplicate(n)
		return
	}
	for _, p := range [...]*answered{&o.newest, &o.settling} {
		if p.known && seq < p.seq && n > p.n {
			p.behind++
		}
	}
	if p := &o.newest; n > o.top && (!p.known || seq > p.seq && n > p.n) {
		*p = answered{seq: seq, n: n, at: now, known: true, again: o.again}
	}
}

// duplicate counts a further number of a request.
func (o *orders) duplicate(n uint64) {
	o.again++
	o.top = max(o.top, n)
	for _, p := range [...]*answered{&o.newest, &o.settling} {
		if p.known && n < p.n {
			p.again++
		}
	}
}

// settle returns the request up to which it is known whether requests were received, and how many from begin on
// were not; zero: none is known. The reflector's numbers begin with first.
func (a *numbered) settle(first uint64, now, wait time.Duration) (decided, missing uint64) {
	if a.orders == nil {
		return 0, 0
	}
	p := &a.orders.settling
	if !p.known || now-p.at <= wait {
		if !p.known {
			*p = a.orders.newest
		}
		return 0, 0
	}
	decided, missing = p.seq+1, a.missingTo(p, first)
	*p = answered{}
	return decided, missing
}

// missing returns how many requests up to the newest one answered in order were not received, or not yet.
func (a *numbered) missing(first uint64) uint64 {
	if a.orders == nil || !a.orders.newest.known {
		return 0
	}
	return a.missingTo(&a.orders.newest, first)
}

func (a *numbered) missingTo(p *answered, first uint64) uint64 {
	asked, received := p.seq+1-a.begin, p.n+1+p.behind
	received -= min(received, first+p.again)
	return asked - min(asked, received)
}
