package ledger

import (
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
)

// replyWait is how many later replies a reply waits for its true T3. A remote end sends it in the next reply
// (Follow-Up Telemetry), our reflector also in the two replies after that (Receipt), so that only the loss of three
// replies in a row loses a timestamp.
const replyWait = 4

// PendingReply is a received reply whose T3 may still be refined.
type PendingReply struct {
	// Packet has the timestamps, and both numbers of the packet.
	Packet  sample.Packet
	arrived time.Duration // monotonic
	// Clock is the quality of this host's clock at sending and at arrival.
	Clock ClockThen
	// Era is the one of the clocks at arrival.
	Era uint64
	// Shared: both ends read one clock.
	Shared bool
	// Lost, by direction: the delay exceeded the loss timeout.
	Lost [2]bool
	// undecided: the delay from T3 to T4 exceeded it, but the remote host may have been busy between T3 and sending: the
	// true T3 decides.
	undecided bool
	// Expired: the round trip exceeded the loss timeout.
	Expired bool
	// unreported: later replies arrived, which our reflector sent before the kernel had told when this one left.
	unreported bool
	// Copy: the path duplicated the request, and this is the reply to a copy, a packet of its own in reverse only.
	Copy bool
}

// replies holds the pending replies.
type replies struct {
	waiting []PendingReply // by reverse number
	next    uint64         // highest reverse number seen + 1
	// seen has bit i set if number next-1-i has arrived.
	seen uint64
	// early holds T3 of replies that have not arrived yet, by reverse number; nil: none yet.
	early *[earlySlots]txReport
}

// earlySlots is how many T3 of replies that have not arrived are remembered.
const earlySlots = 8

// txReport is the remote end's report on one reply: a true T3, or its difference to the one in the reply.
type txReport struct {
	number uint64 // of the reply, + 1; 0: none
	t3     instant.Time
	left   stampfmt.ReplyTX
}

// settle sets the true T3 of the reply numbered reverseSeq and passes it to done.
func (a *replies) settle(reverseSeq uint64, t3 instant.Time, done func(*PendingReply)) {
	if !t3.IsZero() {
		a.apply(txReport{number: reverseSeq + 1, t3: t3}, done)
	}
}

// left does the same for our reflector's report.
func (a *replies) left(reverseSeq uint64, l stampfmt.ReplyTX, done func(*PendingReply)) {
	if l.Known {
		a.apply(txReport{number: reverseSeq + 1, left: l}, done)
		return
	}
	for i := range a.waiting {
		if w := &a.waiting[i]; w.Packet.ReverseSeq == reverseSeq {
			w.unreported = true
		}
	}
}

// widenT3 widens the uncertainty of T3 in a reply that may have waited in the remote host: it tells when its replies left, and had not the time of
// this one when it sent later ones. The reply left after T3, and before it arrived.
func (w *PendingReply) widenT3(told bool) {
	if t3 := &w.Packet.T3; told && w.unreported && t3.Origin == sample.InPacket && w.Packet.T4.Present() {
		t3.TXUncertainty = max(0, w.Packet.T4.At.Sub(t3.At))
	}
}

func (a *replies) apply(t txReport, done func(*PendingReply)) {
	n := t.number - 1
	for i := range a.waiting {
		if w := &a.waiting[i]; w.Packet.ReverseSeq == n {
			w.settle(t)
			a.conclude(i, done)
			return
		}
	}
	if a.saw(n) {
		return
	}
	if a.early == nil {
		a.early = new([earlySlots]txReport)
	}
	a.early[n%earlySlots] = t
}

// saw reports whether reply n has arrived, as far as that is known.
func (a *replies) saw(n uint64) bool { return n < a.next && a.seen>>(a.next-1-n)&1 != 0 }

// see records that reply n arrived.
func (a *replies) see(n uint64) {
	if n >= a.next {
		a.seen <<= n + 1 - a.next
		a.next = n + 1
	}
	a.seen |= 1 << (a.next - 1 - n)
}

func (w *PendingReply) settle(t txReport) {
	t3 := &w.Packet.T3
	switch {
	case !t.left.Known:
		*t3 = sample.Stamp{At: t.t3, Origin: sample.FollowUp}
	case t3.Present():
		*t3 = sample.Stamp{At: t3.At.Add(t.left.After), Origin: sample.FollowUp, TXUncertainty: t.left.TXUncertainty}
	}
}

// conclude passes a waiting reply to done, which must not change a.
func (a *replies) conclude(i int, done func(*PendingReply)) {
	done(&a.waiting[i])
	a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
}

// pass passes a reply that does not wait to done.
func (a *replies) pass(w *PendingReply, done func(*PendingReply)) {
	a.waiting = append(a.waiting, *w)
	a.conclude(len(a.waiting)-1, done)
}

// put adds a reply. Those too old for a report of the remote end are passed to done unchanged. It allocates only if
// more replies wait than ever before.
func (a *replies) put(w *PendingReply, done func(*PendingReply)) {
	n := w.Packet.ReverseSeq
	a.see(n)
	at := len(a.waiting)
	a.waiting = append(a.waiting, *w)
	for ; at > 0 && a.waiting[at-1].Packet.ReverseSeq > n; at-- {
		a.waiting[at], a.waiting[at-1] = a.waiting[at-1], a.waiting[at]
	}
	if a.early != nil {
		if t := a.early[n%earlySlots]; t.number == n+1 {
			a.waiting[at].settle(t)
			a.conclude(at, done)
		}
	}
	for len(a.waiting) > 0 && a.waiting[0].Packet.ReverseSeq+replyWait < a.next {
		a.conclude(0, done)
	}
}

// flush passes all replies that arrived before the given time to done, oldest first.
func (a *replies) flush(before time.Duration, done func(*PendingReply)) {
	for i := 0; i < len(a.waiting); {
		if a.waiting[i].arrived < before {
			a.conclude(i, done)
		} else {
			i++
		}
	}
}
