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

// narrow takes one packet for the bound of the clocks' offset. The clocks need not be
// trusted for it, but must not have been stepped.
func (s *session) narrow(p *sample.Packet) {
	switch {
	case s.offset == nil || p.Near.Reason == sample.NearStepped:
		return
	case p.Far.Reason == sample.FarStepped:
		s.offset.Reset()
		return
	case !p.T1.Present() || !p.T2.Present() || !p.T3.Present() || !p.T4.Present():
		return
	}
	stamped := s.stamped(p)
	s.offset.Add(&stamped)
	s.contradictory = s.offset.Contradictory(&stamped)
}

// stamped is p as the estimator of the offset takes it.
func (s *session) stamped(p *sample.Packet) feasible.Packet {
	return feasible.Packet{
		T1: p.T1.At, T2: p.T2.At, T3: p.T3.At, T4: p.T4.At,
		ForwardStamps: s.ends.Stamps(sample.Forward, p.T1, p.T2),
		ReverseStamps: s.ends.Stamps(sample.Reverse, p.T3, p.T4),
	}
}

// tighten returns the bound of both clocks together, given what they say of
// themselves: less, where the path's least delay leaves less in either delay of p. What
// contradicts itself says nothing; where the path contradicts the clocks, one of the two
// is wrong, and the larger bound covers either.
func (s *session) tighten(clocks time.Duration, p *sample.Packet) time.Duration {
	if s.offset == nil || !p.T1.Present() || !p.T2.Present() || !p.T3.Present() || !p.T4.Present() {
		return clocks
	}
	stamped := s.stamped(p)
	low, high, ok := s.offset.Forward(&stamped)
	low2, high2, ok2 := s.offset.Reverse(&stamped)
	if !ok || !ok2 {
		return clocks
	}
	low, high = min(low, low2), max(high, high2)
	feasible := max(low.Abs(), high.Abs())
	if low > clocks || high < -clocks {
		return feasible
	}
	return min(clocks, feasible)
}
