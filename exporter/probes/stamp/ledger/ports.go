package ledger

import (
	"time"

	"oneway.example/exporter/estimate/seqwin"
)

// ports are the source ports of a session whose test packets have no Receipt. A reflector may number, and count, the packets of each of
// them by themselves (RFC 8762 section 4.2: a session has one), and replies to a former port may arrive between those to the present one.
type ports struct {
	// present is the port of the present numbers; former is the one of the numbers before, which ended at next.
	present, former int
	next            uint64
	// counted is the port of the last counts of our reflector.
	counted int
}

// ports returns them; the zero value is of the first one.
func (a *Account) ports() ports {
	if a.faults == nil {
		return ports{}
	}
	return a.faults.ports
}

// at makes a port the present one, if it is a later one.
func (a *Account) at(port int) {
	if port > a.ports().present {
		a.fault().ports.present = port
	}
}

// atPort begins the numbers of a port with the first reply there, to q. It returns false for a reply to a former port, whose number is not
// of the present ones. A reflector that copies the sender's number has one range for all ports.
func (a *Account) atPort(r *Reply, q Request, now time.Duration) (present bool) {
	at, numbers := a.ports().present, a.Kind == RemoteStateful || a.Kind == RemoteOurs
	switch {
	case r.Port == at:
	case r.Port < at:
		if numbers {
			r.HasFollow = false // it has a number too
			return false
		}
	case a.reverseOn && (numbers || r.Packet.Seq != r.Packet.SenderSeq):
		if a.Kind == RemoteOurs {
			a.renumbered = true
		} else {
			a.endLife(q.Seq, LowConfidencePort)
		}
		a.beginPort(r.Port, uint64(r.Packet.Seq), now)
	default:
		a.at(r.Port)
	}
	return true
}

// beginPort begins the numbers of a port with n.
func (a *Account) beginPort(port int, n uint64, now time.Duration) {
	p := &a.fault().ports
	p.former, p.next, p.present = p.present, a.reverse.Counts().Next, port
	a.beginNumbers(n, now)
}

// countedAt takes the port of a reply with the counts of our reflector, and reports whether it is the first one of that port.
func (a *Account) countedAt(port int) (first bool) {
	if first = !a.opts.Receipts && port > a.ports().counted; first {
		a.fault().ports.counted = port
	}
	return first
}

// numbersCounted reports whether our reflector's counts are of the session whose numbers are the present ones.
func (a *Account) numbersCounted() bool {
	p := a.ports()
	return a.opts.Receipts || p.counted == p.present
}

// numberOfFormerPort takes the first reply to a request that has the number of a former port. Numbers that had arrived, or were missing,
// when the present ones began are counted. overdue: its delay exceeded the loss timeout.
func (a *Account) numberOfFormerPort(r *Reply, overdue bool) seqwin.Verdict {
	d, p := &a.rev, a.ports()
	counted := r.Port == p.former && seqwin.Extend(p.next, r.Packet.Seq) < p.next
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
