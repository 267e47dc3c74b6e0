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
	s.measureRoundTrip(a)
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

// measureRoundTrip takes the round trip, and the time in the reflector. Two stamps of one
// clock that was stepped between them have no difference, and a reflector does not send
// before it has received.
func (s *session) measureRoundTrip(a *answer) {
	p := &a.packet
	residence, known := p.Residence()
	switch {
	case p.Near.Reason == sample.NearStepped:
		s.roundTrips.invalid[sample.NearStepped]++
		return
	case p.Far.Reason == sample.FarStepped, known && residence < 0:
		s.roundTrips.invalid[sample.FarStepped]++
		return
	case known:
		s.series.residence.Observe(residence.Seconds())
	}
	if a.expired {
		return
	}
	if rtt, ok := p.RoundTrip(); ok {
		s.roundTrips.times.Add(plain(rtt))
		s.series.roundTrip.Observe(rtt.Seconds())
	}
}

// stepped is called when CLOCK_REALTIME has jumped at either end: the window's delays are of
// two clocks and mean nothing together.
func (s *session) stepped() {
	s.era++
	if s.collect != nil {
		*s.collect = collector{}
	}
	for _, d := range []*direction{&s.fwd, &s.rev} {
		d.delays.Break()
		d.variation.Break()
		s.drain(d) // its window ends here
	}
	if s.offset != nil {
		s.offset.Reset()
	}
}

// roundTrips are the round trips of a session, and the times of its window.
type roundTrips struct {
	lost, received uint64
	// unanswered are those of the lost ones to which no answer came at all.
	unanswered uint64
	// answeredLate were answered after the waiting time.
	answeredLate uint64
	times        delay.Window
	invalid      [reasonCount]uint64
}

// answered counts first answers, whenever they came.
func (r *roundTrips) answered() uint64 { return r.received + r.answeredLate }

// lose counts n packets that nobody answered in time, and those that nobody has answered
// since.
func (r *roundTrips) lose(n, unanswered int) {
	r.lost += uint64(n)
	r.unanswered += uint64(unanswered)
	r.times.Decided(0, n)
}
