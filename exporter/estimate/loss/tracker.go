// Package loss converts the growing counts of a receiver (package seqwin) into the changes between two readings:
// how many packets were lost, and in which pattern (RFC 7680, RFC 3357).
//
// The receiver may be in this process or at the remote end of the path; a remote end's counts are not trusted. They
// may be old, restart or be invalid: nothing here underflows, and no losses are invented.
package loss

import (
	"oneway.example/exporter/estimate/seqwin"
)

// Delta is what changed between two updates.
type Delta struct {
	// Decided is how many numbers were decided, received or lost.
	Decided uint64
	// Received counts unique packets in time, some of which may be above the decided numbers. Lost counts numbers;
	// Duplicated, Reordered and Late count arrivals; Bursts counts new runs of lost numbers.
	Received, Lost, Duplicated, Reordered, Late, Bursts uint64
	// Joined is how many of these runs are parts of one, because overdue packets lie between them.
	Joined uint64
	// Completed is the lengths of the runs of lost numbers that ended, oldest first. It is valid until the next
	// update.
	Completed []int
	// PatternLost is how many of Lost are in no run of Completed, now or later, because too many numbers were
	// decided at once for their order to be known.
	PatternLost uint64
	// Unordered is how many of Lost are in an unknown number of runs, not included in Bursts.
	Unordered uint64
	// Continued: the first number decided was lost, and so was the previous one, decided earlier.
	Continued bool
	// Restarted: the receiver began anew; the delta is its counts since.
	Restarted bool
	// Stale: the counts are older than the previous ones; the delta is empty.
	Stale bool
}

// Exclude removes n of the lost packets, which the receiving host dropped. It is unknown which they are, so the
// pattern of the others is unknown too.
func (d *Delta) Exclude(n uint64) {
	n = min(n, d.Lost)
	d.Lost -= n
	d.Decided -= min(n, d.Decided)
	d.PatternLost, d.Unordered, d.Bursts, d.Joined = d.Lost, d.Lost, 0, 0
	d.Completed, d.Continued = nil, false
}

// Tracker follows one receiver. The zero value is empty: its first update returns all of the receiver's counts.
type Tracker struct {
	last seqwin.Counts
	any  bool
	// outcomes is the number of outcomes below last.Base in last.Recent, at most seqwin.RecentBits.
	outcomes uint16
	// open is the length of the run of lost numbers that ends at last.Base-1.
	open      uint64
	completed []int
	// overdue holds the overdue ones of the last RecentBits numbers, plus 1, by their remainder; nil: none yet.
	overdue *[seqwin.RecentBits]uint64
}

// Reset discards the receiver's state: the next update is a first one. It is called when a restart of the receiver
// is known by other means.
func (t *Tracker) Reset() { *t = Tracker{completed: t.completed[:0]} }

// AddOverdue adds number n, which the receiver counts as received and which exceeded the loss timeout: it is lost (RFC
// 7680 section 2.4).
func (t *Tracker) AddOverdue(n uint64) Delta {
	d := Delta{Lost: 1, Bursts: 1}
	for _, beside := range [2]uint64{n - 1, n + 1} {
		if t.isOverdue(beside) || t.isLost(beside) {
			d.Joined++
		}
	}
	if t.overdue == nil {
		t.overdue = new([seqwin.RecentBits]uint64)
	}
	t.overdue[n%seqwin.RecentBits] = n + 1
	return d
}

func (t *Tracker) isOverdue(n uint64) bool {
	return t.overdue != nil && t.overdue[n%seqwin.RecentBits] == n+1 && n+1 != 0
}

// isLost reports whether n is lost by the last counts.
func (t *Tracker) isLost(n uint64) bool {
	c := &t.last
	return t.any && n >= c.First && n < c.Base && c.Base-1-n < uint64(t.outcomes) && !received(c, int(c.Base-1-n))
}

// Update adds the receiver's counts. See UpdateWithin.
func (t *Tracker) Update(c seqwin.Counts) Delta { return t.UpdateWithin(c, seqwin.RecentBits) }

// UpdateWithin adds the counts of a receiver that reports the outcome of only the newest known numbers in c.Recent.
// Run lengths are exact if not more than that were decided since the last update, and in many other cases: see
// Delta. It does not allocate once its buffer has grown.
//
// Counts of which none is ahead of the last ones are of a reply overtaken by a later one (Stale). Counts of which
// some increased and some decreased, or that begin at another First, are those of a restarted receiver.
func (t *Tracker) UpdateWithin(c seqwin.Counts, known int) Delta {
	t.completed = t.completed[:0]
	if t.any && c.First == t.last.First && behind(&c, &t.last) {
		return Delta{Stale: c != t.last}
	}
	restarted := t.any && (c.First != t.last.First || anyBack(&c, &t.last))
	if t.any = t.any && !restarted; !t.any {
		// A run that the old receiver left open cannot end; it is reported as far as it is known.
		t.complete()
		t.last = seqwin.Counts{First: c.First, Base: c.First}
	}
	d := Delta{
		Restarted: restarted, Decided: c.Base - min(c.Base, t.last.Base), Received: c.Received - t.last.Received,
		Lost: c.Lost - t.last.Lost, Duplicated: c.Duplicated - t.last.Duplicated,
		Reordered: c.Reordered - t.last.Reordered, Late: c.Late - t.last.Late, Bursts: c.Bursts - t.last.Bursts,
	}
	if !t.any {
		// A receiver without First reports 0: the counts are then more accurate.
		d.Decided = min(d.Decided, d.Received+d.Lost)
	}
	known = min(max(known, 0), seqwin.RecentBits)
	if t.open > 0 && d.Decided > 0 {
		// Beyond the reported outcomes, only a smaller count of runs shows that one continued.
		reported := d.Decided <= uint64(known)
		d.Continued = reported && !received(&c, int(d.Decided)-1) || !reported && d.Lost > 0 && (d.Bursts == 0 || d.Lost >= d.Decided)
	}
	d.PatternLost = t.pattern(&c, &d, known)
	d.Completed = t.completed
	d.Joined = t.joins(&c, int(min(d.Decided, uint64(known))))
	t.last, t.any, t.outcomes = c, true, uint16(known)
	return d
}

// pattern follows the runs through the numbers decided since the last update and returns how many lost ones are in
// none of them.
func (t *Tracker) pattern(c *seqwin.Counts, d *Delta, known int) (unordered uint64) {
	reported := int(min(d.Decided, uint64(known)))
	// A wrong bitmap must not contain more losses than were counted.
	lost, reported := lostWithin(c, reported, d.Lost)
	unordered = d.Lost - lost
	if unreported := d.Decided - uint64(reported); unreported > 0 {
		unordered = t.bridge(unordered, unreported, d.Bursts-min(d.Bursts, begins(c, reported)), reported > 0)
	}
	for i := reported - 1; i >= 0; i-- {
		if received(c, i) {
			t.complete()
		} else {
			t.open++
		}
	}
	return unordered
}

// joins counts how often a lost one of the newest reported numbers is next to an overdue one.
func (t *Tracker) joins(c *seqwin.Counts, reported int) (n uint64) {
	for i := range reported {
		if received(c, i) {
			continue
		}
		for _, beside := range [2]uint64{c.Base - 2 - uint64(i), c.Base - uint64(i)} {
			if t.isOverdue(beside) {
				n++
			}
		}
	}
	return n
}

// bridge handles unreported numbers of which lost were lost in bursts runs that began there (or with the oldest
// reported number), and returns how many of them cannot be assigned to a run.
func (t *Tracker) bridge(lost, unreported, bursts uint64, reported bool) (unordered uint64) {
	switch {
	case lost >= unreported:
		// All lost: an outage.
		t.open += unreported
		return lost - unreported
	case bursts == 0:
		// All losses continue the open run.
		if t.open > 0 {
			t.open += lost
			lost = 0
		}
		t.complete()
		return lost
	case lost == 0:
		t.complete()
		return 0
	case bursts == 1 && t.open == 0 && reported:
		// One run; the oldest reported number shows whether it has ended.
		t.open = lost
		return 0
	}
	t.complete()
	return lost
}

// complete ends the open run, if there is one.
func (t *Tracker) complete() {
	if t.open > 0 {
		t.completed = append(t.completed, int(min(t.open, 1<<31-1)))
		t.open = 0
	}
}

// received reports the outcome of number Base-1-i.
func received(c *seqwin.Counts, i int) bool { return c.Recent[i/64]>>(i%64)&1 != 0 }

// lostWithin counts the lost ones among the newest reported numbers; above limit it stops there, and returns how
// far it counted.
func lostWithin(c *seqwin.Counts, reported int, limit uint64) (lost uint64, upTo int) {
	for i := range reported {
		if received(c, i) {
			continue
		}
		if lost == limit {
			return lost, i
		}
		lost++
	}
	return lost, reported
}

// begins counts the runs of lost numbers that certainly begin within the newest reported numbers: those after a
// received number.
func begins(c *seqwin.Counts, reported int) (n uint64) {
	for i := 0; i+1 < reported; i++ {
		if !received(c, i) && received(c, i+1) {
			n++
		}
	}
	return n
}

// behind reports whether c is nowhere ahead of last.
func behind(c, last *seqwin.Counts) bool {
	return c.Base <= last.Base && c.Next <= last.Next && c.Received <= last.Received &&
		c.Lost <= last.Lost && c.Duplicated <= last.Duplicated &&
		c.Reordered <= last.Reordered && c.Late <= last.Late && c.Bursts <= last.Bursts
}

// anyBack reports whether c is anywhere behind last.
func anyBack(c, last *seqwin.Counts) bool {
	return c.Base < last.Base || c.Next < last.Next || c.Received < last.Received ||
		c.Lost < last.Lost || c.Duplicated < last.Duplicated ||
		c.Reordered < last.Reordered || c.Late < last.Late || c.Bursts < last.Bursts
}

// Window sums up the deltas since the last Reset. The zero value is empty.
type Window struct {
	decided, lost, bursts, joined uint64
	// unordered are losses in unknown runs.
	unordered uint64
}

// Add adds a delta.
func (w *Window) Add(d Delta) {
	if w.decided == 0 && d.Continued {
		w.bursts++ // the rest of a run that an earlier window began
	}
	w.decided += d.Decided
	w.lost += d.Lost
	w.bursts += d.Bursts
	w.joined += d.Joined
	w.unordered += d.Unordered
}

// Reset begins a new window.
func (w *Window) Reset() { *w = Window{} }

// Decided is the number of packets decided in the window.
func (w *Window) Decided() uint64 { return w.decided }

// Lost is the number of lost ones.
func (w *Window) Lost() uint64 { return w.lost }

// Bursts is the number of runs of consecutive losses within the window: a run across its border counts in both
// windows. Losses in unknown order count as one run each, as for random losses.
func (w *Window) Bursts() uint64 {
	if w.lost > 0 {
		return max(w.bursts+w.unordered-min(w.bursts, w.joined), 1)
	}
	return 0
}

// Ratio is lost over decided, 0..1 (RFC 7680 section 4.1); not defined if
// nothing was decided.
func (w *Window) Ratio() (float64, bool) {
	// An invalid report of a remote end must not give a ratio above 1.
	of := max(w.decided, w.lost)
	if of == 0 {
		return 0, false
	}
	return float64(w.lost) / float64(of), true
}

// BurstRatio is BurstR of ITU-T G.107 clause 7.5: the mean length of the runs of consecutive losses over 1/(1-p),
// their mean length if losses at the ratio p were independent. 1 is random, above 1 bursty, below 1 regular. It is
// undefined without losses, with nothing but losses, and for losses in unknown runs.
func (w *Window) BurstRatio() (float64, bool) {
	p, ok := w.Ratio()
	if !ok || w.lost == 0 || p >= 1 || w.unordered > 0 {
		return 0, false
	}
	return float64(w.lost) / float64(w.Bursts()) * (1 - p), true
}
