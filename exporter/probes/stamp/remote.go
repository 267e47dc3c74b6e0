package stamp

import (
	"math/bits"
	"time"

	"oneway.example/exporter/seqwin"
	wire "oneway.example/exporter/wire/stamp"
)

// remote is the forward direction as our reflector has counted it, widened to
// 64 bits from the Receipts of one epoch (one life of its session).
type remote struct {
	known           bool
	epoch, previous uint32
	counts          seqwin.Counts
	corrupted, tx   uint64
	drops           uint64 // of its socket
	words           int    // of counts.Recent
	// decided is Base before the newest Receipt, former is Next of the life before.
	decided, former uint64
	// heard is when an answer of the present life came last, by sched.Now.
	heard time.Duration
}

// firstOf finds the number with which the far end's count began: what it has
// decided, received (told by the bitmap) and lost, reaches from there to Base. A
// bitmap that is full may hide more; all that is not pending is then taken.
func firstOf(c *seqwin.Counts, words int) uint64 {
	received := uint64(0)
	for _, w := range c.Recent[:words] {
		received += uint64(bits.OnesCount64(w))
	}
	decided := c.Lost + received
	if decided >= uint64(64*words) {
		decided = c.Base - min(c.Base, c.Next-min(c.Next, c.Received+c.Lost))
	}
	return c.Base - min(c.Base, decided)
}

// news is what a Receipt turned out to be.
type news uint8

const (
	newsStale   news = iota // older than what is known: a reordered answer
	newsFormer              // of a former life of the far end's session
	newsFirst               // the first that is heard
	newsUpdate              // the same epoch, further on
	newsRestart             // the far end has lost its session and started anew
)

// update takes a filled Receipt.
func (r *remote) update(rc *wire.Receipt) news {
	if r.known && rc.Epoch != r.epoch {
		if rc.Epoch == r.previous {
			return newsFormer
		}
		previous, former := r.epoch, r.counts.Next
		*r = (&remote{}).widen(rc)
		r.previous, r.former = previous, former
		return newsRestart
	}
	next := r.widen(rc)
	if r.known && (next.counts.Next < r.counts.Next || next.counts.Received < r.counts.Received ||
		next.counts.Lost < r.counts.Lost || next.counts.Duplicated < r.counts.Duplicated ||
		next.counts.Late < r.counts.Late || next.tx < r.tx || next.corrupted < r.corrupted) {
		return newsStale
	}
	next.previous, next.former, next.decided = r.previous, r.former, r.counts.Base
	first := !r.known
	*r = next
	if first {
		return newsFirst
	}
	return newsUpdate
}

func (r *remote) widen(rc *wire.Receipt) remote {
	old := &r.counts
	n := remote{known: true, epoch: rc.Epoch, words: rc.Words}
	n.counts = seqwin.Counts{
		First:      old.First,
		Base:       seqwin.Extend(old.Base, rc.Base),
		Next:       seqwin.Extend(old.Next, rc.Next),
		Received:   seqwin.Extend(old.Received, rc.Received),
		Lost:       seqwin.Extend(old.Lost, rc.Lost),
		Duplicated: seqwin.Extend(old.Duplicated, rc.Duplicated),
		Reordered:  seqwin.Extend(old.Reordered, rc.Reordered),
		Late:       seqwin.Extend(old.Late, rc.Late),
		Bursts:     seqwin.Extend(old.Bursts, rc.Bursts),
		Recent:     rc.Recent,
	}
	n.corrupted = seqwin.Extend(r.corrupted, rc.Corrupted)
	n.tx = seqwin.Extend(r.tx, rc.Tx)
	if n.drops = r.drops; rc.Host {
		n.drops = seqwin.Extend(r.drops, rc.SocketDrops)
	}
	return n
}
