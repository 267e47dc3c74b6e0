package stamp

import (
	"time"

	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/seqwin"
)

// totals are whole-run counts of one direction; they only grow.
type totals struct {
	sent, received, lost, duplicated, reordered, late, corrupted uint64
}

func (t totals) inFlight() uint64 { return t.sent - min(t.sent, t.received+t.lost) }

func (t totals) plus(c seqwin.Counts) totals {
	t.received += c.Received
	t.lost += c.Lost
	t.duplicated += c.Duplicated
	t.reordered += c.Reordered
	t.late += c.Late
	return t
}

// direction is everything that is estimated about one way of the path.
type direction struct {
	dir sample.Direction
	// known: losses of this direction are told from those of the other.
	known bool
	// ended are the totals of earlier lives of the far end's session; now
	// includes them and the present one.
	ended, now totals
	tracker    loss.Tracker

	// The present window. pdv holds its delays by number, valid or not: their
	// differences are free of a constant clock offset.
	losses    loss.Window
	delays    delay.Window
	variation delay.Variation
	pdv       delay.PDV
	full      bool // pdv has no more room
	voices    []playback

	negative, lowConfidence uint64
	// held counts delays whose packet may have stood on its host after its stamp.
	held    uint64
	invalid [reasonCount]uint64
}

// count takes the receiver's counts of this direction, of which the newest
// known numbers are told one by one. Bursts that ended are given to burst.
func (d *direction) count(c seqwin.Counts, known int, burst func(length int)) {
	delta := d.tracker.UpdateWithin(c, known)
	d.losses.Add(delta)
	d.delays.Lost(int(delta.Lost))
	for _, n := range delta.Completed {
		burst(n)
	}
	before := d.now
	d.now = d.ended.plus(c)
	d.now.sent, d.now.corrupted = before.sent, before.corrupted
	d.known = true
}

// restart begins the count of a new life of the far end's session: unaccounted
// packets of the old one are lost.
func (d *direction) restart(unaccounted uint64) {
	d.now.lost += unaccounted
	d.ended = d.now
	d.tracker.Reset()
}

// add takes one delay. It returns the IPDV, if there is one.
func (d *direction) add(seq uint64, v sample.Delay) (ipdv time.Duration, ok bool) {
	d.full = !d.pdv.Add(seq, v.Value)
	if v.OK() {
		d.delays.Add(v)
	}
	return d.variation.Add(seq, v.Value)
}

// reset begins a new window.
func (d *direction) reset() {
	d.losses.Reset()
	d.delays.Reset()
	d.pdv.Reset()
	d.full = false
}

// stampCounts counts stamps by origin, sample.Absent for the missing ones.
type stampCounts [sample.FollowUp + 1]uint64
