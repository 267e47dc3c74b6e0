package stamp

import (
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/sample"
)

// measure feeds one direction with one delay, and returns it.
//
// A delay below its bound is valid, of low confidence, and counted as such: it stays in
// every distribution. A negative delay within its bound is no proof of a fault. Beyond its
// bound it is: counted, and shown as it is, never clamped (invariant 8).
//
// The delay of a packet that is lost in this direction, because it took longer than the
// waiting time, is infinite (RFC 7680 section 2.4, RFC 7679 section 3.4): it is in no
// distribution.
func (s *session) measure(d *direction, a *answer, seq uint64, from, to sample.Stamp, clocks sample.Bound) sample.Delay {
	v, fault := s.ends.Delay(d.dir, from, to, clocks)
	if a.lost[d.dir] {
		return v
	}
	if fault {
		d.negative++
	}
	if !v.OK() {
		d.invalid[v.Reason]++
	}
	if v.Reason == sample.NoStamp {
		return v
	}
	series := &s.series.direction[d.dir]
	if v.OK() {
		series.delay.Observe(v.Value.Seconds())
		if bound.LowConfidence(v) {
			d.lowConfidence++
		}
		if from.Held > bound.KernelError {
			d.held++
		}
	}
	if v.Reason == sample.NearStepped || v.Reason == sample.FarStepped || a.era != s.era {
		return v // of other clocks than the window's: not even differences mean anything
	}
	ipdv, ok := d.add(seq, v)
	if ok {
		series.ipdv.Observe(ipdv.Seconds())
	}
	if s.collect != nil {
		s.collect.add(d.dir, v.Value, ipdv, ok)
	}
	if d.full {
		s.drain(d)
	}
	return v
}

// summary is what a window tells: nothing without a valid delay.
type summary struct {
	delay.Snapshot
	bound time.Duration
	// losses are known to be of this direction, or not.
	losses bool
}

func (s *session) summarise(d *direction) summary {
	snap := d.delays.Snapshot()
	return summary{snap, snap.Bound(), s.lossesKnown(d)}
}

// lossesKnown tells whether it is known how many of the window's packets this direction lost:
// where it cannot be told from the other one, only if no round trip was lost.
func (s *session) lossesKnown(d *direction) bool {
	return d.known || s.roundTrips.times.Lost() == 0 && d.losses.Lost() == 0
}

// Quantile is not defined where it is not known how many packets are infinitely late.
func (w *summary) Quantile(q float64) (time.Duration, bool) {
	v, ok := w.Snapshot.Quantile(q)
	return v, ok && w.losses
}

// told: there is a valid delay, and so a bound.
func (w *summary) told() bool { return w.Count > 0 }
