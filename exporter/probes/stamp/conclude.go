package stamp

import (
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/tstamp/phc"
)

// hardwareUncertainty is that of the card's stamps, or what it was at the most if
// the card was lost since.
func (h *hub) hardwareUncertainty() time.Duration {
	if h != nil && h.card != nil {
		if u, ok := h.card.Uncertainty(); ok {
			return u
		}
	}
	return phc.MaxUncertainty
}

// conclude feeds one complete answer to the estimators. The caller holds s.mu.
func (s *session) conclude(a *answer) {
	p := &a.packet
	f := s.flights.get(p.Seq)
	if f != nil {
		p.T1 = f.t1
		if !p.T1.Present() {
			p.T1 = sample.Stamp{At: f.user, Origin: sample.User}
		}
	}
	for i, stamp := range []sample.Stamp{p.T1, p.T2, p.T3, p.T4} {
		s.stamps[i][stamp.Origin]++
	}
	quality := s.clock.Quality(instant.Now())
	if quality.Steps != s.steps {
		s.steps = quality.Steps
		s.stepped()
	}
	p.Near = a.clock.and(quality).bound
	s.ends.Near.Conversion, s.ends.Far.Ours = s.hub.hardwareUncertainty(), s.kind == farOurs
	clocks := s.judge(a)
	s.lastConcluded, s.farReason = p.T4.At, p.Far.Reason
	forward := s.measure(&s.fwd, a, p.Seq, p.T1, p.T2, clocks)
	reverse := s.measure(&s.rev, a, p.ReverseSeq, p.T3, p.T4, clocks)
	if s.observe != nil {
		s.observe(*p, forward, reverse)
	}
	s.measureRoundTrip(p)
}

// judge is what both clocks together may be off by for this answer.
func (s *session) judge(a *answer) sample.Bound {
	p := &a.packet
	if s.shared = a.shared && bound.SharedClock(p.Near, p.Far); s.shared {
		p.Near, p.Far = sample.Bound{Reason: sample.OK}, sample.Bound{Reason: sample.OK}
	}
	s.narrow(p)
	clocks := bound.Clocks(p.Near, p.Far)
	if clocks.Reason == sample.OK {
		clocks.Error = s.tighten(clocks.Error, p)
	}
	return clocks
}

// measureRoundTrip takes the round trip, and the time in the reflector.
func (s *session) measureRoundTrip(p *sample.Packet) {
	if rtt, ok := p.RoundTrip(); ok {
		s.roundTrips.times.Add(plain(rtt))
		s.series.roundTrip.Observe(rtt.Seconds())
	}
	if r, ok := p.Residence(); ok {
		s.series.residence.Observe(r.Seconds())
	}
}

// stepped is called when CLOCK_REALTIME has jumped: the window's delays are of
// two clocks and mean nothing together.
func (s *session) stepped() {
	for _, d := range []*direction{&s.fwd, &s.rev} {
		d.delays.Reset()
		d.variation.Break()
		d.pdv.Reset()
		d.full = false
	}
	if s.offset != nil {
		s.offset.Reset()
	}
}

// roundTrips are the round trips of a session, and the times of its window.
type roundTrips struct {
	lost, received uint64
	times          delay.Window
}

// lose counts n packets that nobody answered in time.
func (r *roundTrips) lose(n int) {
	r.lost += uint64(n)
	r.times.Lost(n)
}
