package stamp

import (
	"time"

	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/sample"
)

// exceeds tells whether a bound is more than a share of a delay; a share of 0 is
// never exceeded. The sign of the delay does not matter.
func exceeds(bound time.Duration, share float64, of time.Duration) bool {
	return share > 0 && float64(bound) > share*float64(of.Abs())
}

// judge says what one delay of a direction is worth.
//
// A delay of trusted clocks whose bound exceeds it (invalid_above) is not reported:
// even its sign is unknown. The window takes it all the same, as bounded: small delays
// are hit first, and without them the smallest and the median of the others would be
// too large. What a window tells is held to the same share (see summary).
//
// A negative delay within its bound (value + bound >= 0) is no proof of a fault, and
// invalid, as its bound exceeds it. Beyond its bound it is proof: counted, valid, and
// so shown as it is, never clamped (invariant 8).
func (s *session) judge(d *direction, p *sample.Packet, from, to sample.Stamp) (v, bounded sample.Delay, stamped bool) {
	v, stamped = p.Delay(d.dir)
	if v.OK() {
		v.Bound = s.tighten(v.Bound, p) + s.stampErrors(d.dir, from, to)
		if v.Value < -v.Bound { // by the stamps: the median of the shortest of paths is zero when corrected
			d.negative++
		}
		if from.Held > kernelError {
			d.held++
		}
	}
	if stamped {
		near := from
		if d.dir == sample.Reverse {
			near = to
		}
		v = s.calibrated.Correct(v, near, s.stampError(near, false))
	}
	if v.OK() && s.opts.MaxBound > 0 && v.Bound > s.opts.MaxBound {
		v.Reason = sample.BoundTooLarge
	}
	bounded = v
	if v.OK() && exceeds(v.Bound, s.opts.InvalidAbove, v.Value) {
		v.Reason = sample.BoundTooLarge
	}
	return v, bounded, stamped
}

// measure feeds one direction with one delay, and returns it.
func (s *session) measure(d *direction, p *sample.Packet, seq uint64, from, to sample.Stamp) sample.Delay {
	v, bounded, stamped := s.judge(d, p, from, to)
	if !v.OK() {
		d.invalid[v.Reason]++
	}
	if !stamped {
		return v
	}
	if a := p.Near.Reason; a == sample.NearStepped {
		return v // the two stamps are of different clocks: not even their difference means anything
	}
	series := &s.series.direction[d.dir]
	if v.OK() {
		series.delay.Observe(v.Value.Seconds())
		d.valid.add(v.Value)
		if exceeds(v.Bound, s.opts.VagueAbove, v.Value) {
			d.vague++
		}
	}
	ipdv, ok := d.add(seq, bounded)
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

// stampErrors bounds what the two stamps of one delay may be off by.
func (s *session) stampErrors(d sample.Direction, from, to sample.Stamp) time.Duration {
	return s.stampError(from, d == sample.Reverse) + s.stampError(to, d == sample.Forward)
}

// most is the largest delay of those that are valid.
type most struct {
	delay time.Duration
	any   bool
}

func (m *most) add(v time.Duration) {
	if !m.any || v > m.delay {
		*m = most{v, true}
	}
}

// summary is what a window may tell: nothing without a valid delay, and no value
// of which the window's bound is more than the share that makes a delay invalid.
type summary struct {
	delay.Snapshot
	bound time.Duration
	share float64
	most  most
}

func (s *session) summarise(d *direction) summary {
	snap := d.delays.Snapshot()
	return summary{snap, snap.Bound(), s.opts.InvalidAbove, d.valid}
}

// told: there is a valid delay, and so a bound.
func (w *summary) told() bool { return w.most.any }

// least is the smallest delay.
func (w *summary) least() (v time.Duration, ok bool) {
	return w.Min, w.told() && !exceeds(w.bound, w.share, w.Min)
}

// quantile is that of the snapshot.
func (w *summary) quantile(q float64) (v time.Duration, ok bool) {
	v, ok = w.Quantile(q)
	return v, ok && w.told() && !exceeds(w.bound, w.share, v)
}
