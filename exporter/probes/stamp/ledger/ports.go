package ledger

import (
	"slices"
	"time"

	"oneway.example/exporter/estimate/seqwin"
)

// Port is a source port of a session: 0 is the first one, later ones have higher numbers.
type Port int64

// ports are the source ports of a session that has changed its own. A reflector other than ours may number the replies to each of them by
// themselves (RFC 8762 section 4.2: a session has one), and replies to a former port may arrive between those to the present one. Our
// reflector moves the session to the new port with the first statistics query from there, which test packets without a Receipt need.
type ports struct {
	// begun are the last ports but the first one, the newest last.
	begun []begun
	// present is the port of the present numbers; former is the one of the numbers before, which ended at next.
	present, former Port
	next            uint64
	// told is the newest port at which a statistics reply of our reflector arrived.
	told Port
	// open counts the requests from former ports without a reply when the present numbers began, at since: a reply still shows that one arrived.
	open  uint64
	since time.Duration
}

// begun is a port with the first request from there.
type begun struct {
	port  Port
	first uint64
}

const (
	// mostBegun is how many ports are remembered: more than still receive.
	mostBegun = 5
	// openTime is for how long former ports receive after the first reply to the present one, besides the loss timeout.
	openTime = 4 * TickInterval
)

// Move records that the next request is the first one from a port.
func (a *Account) Move(to Port) {
	p := &a.fault().ports
	if len(p.begun) == mostBegun {
		p.begun = slices.Delete(p.begun, 0, 1)
	}
	p.begun = append(p.begun, begun{to, a.Next()})
}

// ports returns them; the zero value is of the first one.
func (a *Account) ports() ports {
	if a.faults == nil {
		return ports{}
	}
	return a.faults.ports
}

// atPort takes the port of the reply to a test packet, which begins the numbers of that port or continues others. It returns false for a
// reply whose number is not of the present ones.
func (a *Account) atPort(r *Reply, now time.Duration) (present bool) {
	p := a.ports()
	switch numbers := a.Kind == RemoteStateful || r.Packet.Seq != r.Packet.SenderSeq; {
	case a.Kind == RemoteOurs:
		// Before a statistics query has arrived, it takes test packets for another sender's, which begin with 0.
		present = r.Port <= p.told || a.continues(r)
	case r.Port == p.present:
		return true
	case r.Port < p.present:
		present = a.Kind != RemoteStateful
	case !numbers || !a.reverseOn: // it copies the sender's numbers, or its first one follows
		a.fault().ports.present = r.Port
		return true
	default:
		return a.numbersOf(r, now)
	}
	r.HasFollow = r.HasFollow && present // it has a number too
	return present
}

// numbersOf takes the first reply at a port. A number below the count of requests from there may begin with 0 there, and one that continues the
// numbers of the former port shows that the reflector has one range for all. Where both are possible, nothing is taken for lost.
func (a *Account) numbersOf(r *Reply, now time.Duration) (present bool) {
	i := slices.IndexFunc(a.ports().begun, func(b begun) bool { return b.port == r.Port })
	p := &a.fault().ports
	if i < 0 {
		p.present = r.Port
		return true
	}
	first, n, seq := p.begun[i].first, uint64(r.Packet.Seq), seqwin.Extend(a.outstandingPackets.next, r.Packet.SenderSeq)
	switch begins := n < a.requests()-min(a.requests(), first); {
	case !begins: // continues, or the reflector has restarted
		p.present = r.Port
		return true
	case a.continues(r):
		first = seq
	case seq > first: // else it has the first number
		n = 0
	}
	a.endLife(first, func(unknown uint64) { p.open, p.since = p.open+unknown, now })
	p.former, p.next, p.present = p.present, a.reverse.Counts().Next, r.Port
	a.beginNumbers(n, now)
	return true
}

// continues reports whether the number of r may be one of the present ones, above all others.
func (a *Account) continues(r *Reply) bool {
	n := seqwin.Extend(a.reverse.Counts().Next, r.Packet.Seq)
	return n >= a.order.next && a.order.fits(n, a.requests())
}

// closePorts leaves the requests undecided that have no reply at a former port.
func (a *Account) closePorts() {
	if n := a.ports().open; n > 0 {
		a.faults.ports.open = 0
		a.undirected(LowConfidencePort, n)
		a.fwd.undecide(n)
	}
}

// otherNumber takes the first reply to a request whose number is not of the present ones. Those that had arrived, or were missing, when the
// present ones began are counted. overdue: its delay exceeded the loss timeout.
func (a *Account) otherNumber(r *Reply, q Request, overdue bool) seqwin.Verdict {
	p := a.ports()
	if p.open > 0 && q.Seq < a.numbered.begin {
		a.faults.ports.open--
		a.fwd.answered(1)
		a.fwd.ended.received++
	}
	d := &a.rev
	counted := a.Kind != RemoteOurs && r.Port == p.former && seqwin.Extend(p.next, r.Packet.Seq) < p.next
	if !counted {
		d.now.sent++
		d.ended.sent++
	}
	if counted || overdue {
		if !counted {
			d.missed(1)
			d.ended.lost++
		}
		d.now.late++
		d.ended.late++
		return seqwin.Late
	}
	d.answered(1)
	d.ended.received++
	return seqwin.Unique
}
