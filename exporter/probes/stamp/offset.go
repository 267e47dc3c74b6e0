package stamp

import (
	"time"

	"oneway.example/exporter/estimate/feasible"
	"oneway.example/exporter/sample"
)

// newOffset is the estimator of the clocks' offset; nil if it is not wanted.
func newOffset(o *Options) *feasible.Estimator {
	if o.PathMinimum == 0 {
		return nil
	}
	return &feasible.Estimator{Minimum: o.PathMinimum}
}

// narrow takes one packet for the bound of the clocks' offset. Its delays are made
// larger by what their stamps may have made them too small. The clocks need not be
// trusted for it, but must not have been stepped.
func (s *session) narrow(p *sample.Packet) {
	switch {
	case s.offset == nil || p.Near.Reason == sample.NearStepped:
		return
	case p.Far.Reason == sample.FarStepped:
		s.offset.Reset()
		return
	}
	for _, t := range []sample.Stamp{p.T1, p.T2, p.T3, p.T4} {
		if !t.Present() {
			return
		}
	}
	s.offset.Add(
		p.T2.At.Sub(p.T1.At)+s.ends.Stamps(sample.Forward, p.T1, p.T2),
		p.T4.At.Sub(p.T3.At)+s.ends.Stamps(sample.Reverse, p.T3, p.T4), p.T4.At)
	s.contradictory = s.offset.Contradictory(p.T4.At)
}

// tighten returns the bound of both clocks together, given what they say of
// themselves: less, where the path's least delay leaves less. What contradicts itself
// says nothing; where the path contradicts the clocks, one of the two is wrong, and
// the larger bound covers either.
func (s *session) tighten(clocks time.Duration, p *sample.Packet) time.Duration {
	if s.offset == nil {
		return clocks
	}
	low, high, ok := s.offset.Interval(p.T4.At)
	if !ok {
		return clocks
	}
	feasible := max(low.Abs(), high.Abs())
	if low > clocks || high < -clocks {
		return feasible
	}
	return min(clocks, feasible)
}
