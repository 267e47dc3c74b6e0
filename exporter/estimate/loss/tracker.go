// Package loss turns the ever-growing counts of a receiver (package seqwin)
// into what happened between two looks at them: how many packets were lost, and
// in which pattern (RFC 7680, RFC 3357).
//
// The receiver may be in this process or at the remote end of the path; a remote
// end's counts are not trusted. They may be old, may restart, may be nonsense:
// nothing here underflows, and nothing is invented.
package loss

import (
	"oneway.example/exporter/seqwin"
)

// Delta is what changed between two updates.
type Delta struct {
	// Decided is how many numbers were decided, received or lost.
	Decided uint64
	// Received counts unique packets in time, some of which may stand above the
	// decided numbers. Lost counts numbers; Duplicated, Reordered and Late
	// arrivals; Bursts runs of lost numbers that began.
	Received, Lost, Duplicated, Reordered, Late, Bursts uint64
	// Joined is how many of the runs so counted turned out to be parts of one: overdue
	// packets lie between them.
	Joined uint64
	// Completed is the lengths of the runs of lost numbers that ended, oldest
	// first. It is valid until the next update.
	Completed []int
	// PatternLost is how many of Lost are in no run of Completed, now or later,
	// because too many numbers were decided at once for their order to be known.
	PatternLost uint64
	// Unordered is how many of Lost are in a number of runs that is not known: Bursts has
	// none of them.
	Unordered uint64
	// Continued: the first number decided was lost, and so was the one before it, which
	// had been decided earlier.
	Continued bool
	// Restarted: the receiver began anew; the delta is what it counted since.
	Restarted bool
	// Stale: the counts are older than those before; the delta is empty.
	Stale bool
}

// Exclude takes n of the lost packets out: the receiving host itself has dropped them. Which
// they are is not known, so neither is the pattern of the others.
func (d *Delta) Exclude(n uint64) {
	n = min(n, d.Lost)
	d.Lost -= n
	d.Decided -= min(n, d.Decided)
	d.PatternLost, d.Unordered, d.Bursts, d.Joined = d.Lost, d.Lost, 0, 0
	d.Completed, d.Continued = nil, false
}

// Tracker follows one receiver. The zero value has seen nothing: its first
// update tells everything that the receiver has counted so far.
type Tracker struct {
	last seqwin.Counts
	any  bool
	// open is the length of the run of lost numbers that ends at last.Base-1.
	open      uint64
	completed []int
	// known is how many numbers below last.Base last.Recent tells of.
	known int
	// overdue has the overdue ones of the last RecentBits numbers, plus 1, by their
	// remainder; nil: there is none yet.
	overdue *[seqwin.RecentBits]uint64
}

// Reset forgets the receiver: the next update is a first one. It is to be
// called when a new run of the receiver is known by other means.
func (t *Tracker) Reset() { *t = Tracker{completed: t.completed[:0]} }

// Overdue takes number n, which the receiver has counted as received, or will, and which took
// longer than the waiting time: it is lost (RFC 7680 section 2.4).
func (t *Tracker) Overdue(n uint64) Delta {
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

// isLost tells whether the last counts say that n was lost.
func (t *Tracker) isLost(n uint64) bool {
	c := &t.last
	return t.any && n >= c.First && n < c.Base && c.Base-1-n < uint64(t.known) && !received(c, int(c.Base-1-n))
}

// Update takes the receiver's counts. See UpdateWithin.
func (t *Tracker) Update(c seqwin.Counts) Delta { return t.UpdateWithin(c, seqwin.RecentBits) }

// UpdateWithin takes the counts of a receiver that tells the outcome of only the
// newest known numbers in c.Recent. Run lengths are exact if not more than that
// were decided since the last update, and in many cases even then: see Delta.
// It allocates nothing once its buffer has grown.
//
// Counts of which none is ahead of the last ones are a reply overtaken by a
// later one (Stale). Counts of which some went forward and some back, or that
// begin at another First, are those of a restarted receiver.
func (t *Tracker) UpdateWithin(c seqwin.Counts, known int) Delta {
	t.completed = t.completed[:0]
	if t.any && c.First == t.last.First && behind(&c, &t.last) {
		return Delta{Stale: c != t.last}
	}
	restarted := t.any && (c.First != t.last.First || anyBack(&c, &t.last))
	if t.any = t.any && !restarted; !t.any {
		// A run that the old receiver left open can no longer end; it is
		// reported as long as it was seen.
		t.complete()
		t.last = seqwin.Counts{First: c.First, Base: c.First}
	}
	d := Delta{
		Restarted: restarted, Decided: c.Base - min(c.Base, t.last.Base), Received: c.Received - t.last.Received,
		Lost: c.Lost - t.last.Lost, Duplicated: c.Duplicated - t.last.Duplicated,
		Reordered: c.Reordered - t.last.Reordered, Late: c.Late - t.last.Late, Bursts: c.Bursts - t.last.Bursts,
	}
	if !t.any {
		// Whoever does not know First says 0: the counts then know better.
		d.Decided = min(d.Decided, d.Received+d.Lost)
	}
	known = min(max(known, 0), seqwin.RecentBits)
	if t.open > 0 && d.Decided > 0 {
		// Beyond what is told, only a count of runs that falls short tells that one went on.
		told := d.Decided <= uint64(known)
		d.Continued = told && !received(&c, int(d.Decided)-1) || !told && d.Lost > 0 && (d.Bursts == 0 || d.Lost >= d.Decided)
	}
	d.PatternLost = t.pattern(&c, &d, known)
	d.Completed = t.completed
	d.Joined = t.joins(&c, int(min(d.Decided, uint64(known))))
	t.last, t.any, t.known = c, true, known
	return d
}

// pattern follows the runs through the numbers decided since the last update
// and returns how many lost ones are in none of them.
func (t *Tracker) pattern(c *seqwin.Counts, d *Delta, known int) (unordered uint64) {
	told := int(min(d.Decided, uint64(known)))
	// A wrong bitmap must not tell of more losses than were counted.
	lost, told := lostWithin(c, told, d.Lost)
	unordered = d.Lost - lost
	if unreported := d.Decided - uint64(told); unreported > 0 {
		unordered = t.bridge(unordered, unreported, d.Bursts-min(d.Bursts, begins(c, told)), told > 0)
	}
	for i := told - 1; i >= 0; i-- {
		if received(c, i) {
			t.complete()
		} else {
			t.open++
		}
	}
	return unordered
}

// joins counts how often a lost one of the newest told numbers lies beside an overdue one.
func (t *Tracker) joins(c *seqwin.Counts, told int) (n uint64) {
	for i := range told {
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

// bridge crosses untold numbers of which lost were lost in bursts runs that
// began there (or with the oldest told number, if any is), and returns how many
// of them cannot be put into a run.
func (t *Tracker) bridge(lost, unreported, bursts uint64, told bool) (unordered uint64) {
	switch {
	case lost >= unreported:
		// All lost: an outage.
		t.open += unreported
		return lost - unreported
	case bursts == 0:
		// Whatever was lost goes on from the open run.
		if t.open > 0 {
			t.open += lost
			lost = 0
		}
		t.complete()
		return lost
	case lost == 0:
		t.complete()
		return 0
	case bursts == 1 && t.open == 0 && told:
		// One run; the oldest told number shows whether it has ended.
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

// received tells the outcome of number Base-1-i.
func received(c *seqwin.Counts, i int) bool { return c.Recent[i/64]>>(i%64)&1 != 0 }

// lostWithin counts the lost among the newest told numbers; if there are more
// than limit it counts only up to there, and tells how far that is.
func lostWithin(c *seqwin.Counts, told int, limit uint64) (lost uint64, upTo int) {
	for i := range told {
		if received(c, i) {
			continue
		}
		if lost == limit {
			return lost, i
		}
		lost++
	}
	return lost, told
}

// begins counts the runs of lost numbers that surely begin within the newest
// told numbers: those with a received number right before them.
func begins(c *seqwin.Counts, told int) (n uint64) {
	for i := 0; i+1 < told; i++ {
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
	// unordered are losses of which it is not known in which runs they are.
	unordered uint64
}

// Add takes what changed.
func (w *Window) Add(d Delta) {
	if w.decided == 0 && d.Continued {
		w.bursts++ // what is left of a run that an earlier window began
	}
	w.decided += d.Decided
	w.lost += d.Lost
	w.bursts += d.Bursts
	w.joined += d.Joined
	w.unordered += d.Unordered
}

// Reset begins a new window.
func (w *Window) Reset() { *w = Window{} }

// Decided is how many packets the window decided.
func (w *Window) Decided() uint64 { return w.decided }

// Lost is how many of them were lost.
func (w *Window) Lost() uint64 { return w.lost }

// Bursts is how many runs of consecutive losses they form within the window: a run that
// crosses its border is one in either window. Losses whose order is not known are as many
// runs, as random ones nearly are.
func (w *Window) Bursts() uint64 {
	if w.lost > 0 {
		return max(w.bursts+w.unordered-min(w.bursts, w.joined), 1)
	}
	return 0
}

// Ratio is lost over decided, 0..1 (RFC 7680 section 4.1); not defined if
// nothing was decided.
func (w *Window) Ratio() (float64, bool) {
	// A remote end that lies must not make a ratio above 1.
	of := max(w.decided, w.lost)
	if of == 0 {
		return 0, false
	}
	return float64(w.lost) / float64(of), true
}

// BurstRatio is BurstR of ITU-T G.107 clause 7.5: the mean length of the runs of
// consecutive losses over 1/(1-p), their mean length if losses at the ratio p
// were independent. 1 is random, above 1 bursty, below 1 regular. It is not
// defined without a loss, nor with nothing but losses, nor where it is not known in which
// runs packets were lost.
func (w *Window) BurstRatio() (float64, bool) {
	p, ok := w.Ratio()
	if !ok || w.lost == 0 || p >= 1 || w.unordered > 0 {
		return 0, false
	}
	return float64(w.lost) / float64(w.Bursts()) * (1 - p), true
}
