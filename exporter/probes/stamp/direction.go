package stamp

import (
	"time"

	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/seqwin"
)

// totals are whole-run counts of one direction.
type totals struct {
	sent, received, lost, duplicated, reordered, late, corrupted uint64
	// dropped by the receiving host itself: neither received nor lost.
	dropped uint64
}

func (t totals) inFlight() uint64 { return t.sent - min(t.sent, t.received+t.lost+t.dropped) }

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
	// overdue are packets that the receiver has counted as received and that took longer
	// than the waiting time; dropped those that it has not received for its host's fault.
	// Both are of the present life.
	overdue, dropped uint64
	lastOverdue      uint64 // its number + 1
	overdueRun       int    // of consecutive numbers up to it, not told yet

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
// known numbers are told one by one. Bursts that ended are given to burst; hostDropped says
// how many of so many losses are the receiving host's own.
func (d *direction) count(c seqwin.Counts, known int, burst func(length int), hostDropped func(lost uint64) uint64) {
	delta := d.tracker.UpdateWithin(c, known)
	if n := hostDropped(delta.Lost); n > 0 {
		d.dropped += n
		delta.Exclude(n)
	}
	d.losses.Add(delta)
	d.delays.Decided(int(delta.Received), int(delta.Lost))
	for _, n := range delta.Completed {
		burst(n)
	}
	if d.overdueRun > 0 && c.Base > d.lastOverdue+1 {
		burst(d.overdueRun)
		d.overdueRun = 0
	}
	before := d.now
	d.now = d.ended.plus(c)
	d.now.received -= min(d.overdue, d.now.received)
	d.now.late += d.overdue
	d.now.lost += d.overdue - min(d.dropped, d.now.lost+d.overdue)
	d.now.dropped += d.dropped
	d.now.sent, d.now.corrupted = before.sent, before.corrupted
	d.known = true
}

// tooLate takes a packet that the receiver has counted as received, and that took longer than
// the waiting time: it is lost (RFC 7680 section 2.4).
func (d *direction) tooLate(seq uint64) {
	d.overdue++
	d.now.received -= min(1, d.now.received)
	d.now.lost++
	d.now.late++
	d.overdueRun++
	d.lastOverdue = seq + 1
	d.losses.Add(d.tracker.Overdue(seq))
	d.delays.Overdue()
}

// answered counts packets as received because each of them was answered.
func (d *direction) answered(received uint64) {
	d.now.received += received
	d.losses.Add(loss.Delta{Decided: received, Received: received})
	d.delays.Decided(int(received), 0)
}

// restart begins the count of a new life of the far end's session: unaccounted packets of the
// old one, of which dropped are the receiving host's, are lost, one after the other if burst
// is there to take their number.
func (d *direction) restart(unaccounted, dropped uint64, burst func(length int)) {
	delta := loss.Delta{Decided: unaccounted, Lost: unaccounted, PatternLost: unaccounted, Unordered: unaccounted}
	switch {
	case dropped > 0:
		delta.Exclude(dropped)
	case burst != nil && unaccounted > 0:
		delta.PatternLost, delta.Unordered, delta.Bursts = 0, 0, 1
		burst(int(unaccounted))
	}
	d.losses.Add(delta)
	d.delays.Decided(0, int(delta.Lost))
	d.now.lost += delta.Lost
	d.now.dropped += dropped
	d.ended = d.now
	d.overdue, d.dropped = 0, 0
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
