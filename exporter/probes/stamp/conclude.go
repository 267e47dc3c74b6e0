package stamp

import (
	"time"

	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/tstamp/phc"
)

// stampError bounds the error of a single stamp against the clock it was taken
// from. The kernel's software stamp is taken within microseconds of the driver
// (Linux, Documentation/networking/timestamping.rst); the figure is the 99th
// percentile between two stamps of a loaded 2-core host. A user-space stamp misses
// the host's own delay, which a busy host does not bound; the figure is the 99th
// percentile of a loaded 2-core host; what a packet was held up before it left
// (sample.Stamp.Held) can be longer. What a foreign reflector wrote is covered
// by its own Error Estimate (RFC 8762 section 4.2.1).
//
// A card stamps within a microsecond of the wire; what is added is how well its
// clock is related to the system's. A far end does not tell that, but ours
// converts nothing above phc.MaxUncertainty.
func (s *session) stampError(t sample.Stamp, far bool) time.Duration {
	const user = 2 * time.Millisecond
	switch t.Origin {
	case sample.Hardware:
		if far {
			return time.Microsecond + phc.MaxUncertainty
		}
		return time.Microsecond + s.hub.hardwareUncertainty()
	case sample.Kernel, sample.FollowUp:
		return max(kernelError, t.Held)
	case sample.InPacket:
		if s.kind != farOurs {
			return 0
		}
		return user
	default:
		return user
	}
}

// kernelError is that of a kernel's stamp of a packet that was not held.
const kernelError = 25 * time.Microsecond

// hardwareUncertainty is that of the card's stamps, or what it was at the most if
// the card was lost since.
func (h *hub) hardwareUncertainty() time.Duration {
	if h.card != nil {
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
	if s.shared = a.shared && needless(p); s.shared {
		p.Near, p.Far = sample.Bound{Reason: sample.OK}, sample.Bound{Reason: sample.OK}
	}
	s.lastConcluded, s.farReason = p.T4.At, p.Far.Reason
	s.narrow(p)
	forward := s.measure(&s.fwd, p, p.Seq, p.T1, p.T2)
	reverse := s.measure(&s.rev, p, p.ReverseSeq, p.T3, p.T4)
	if s.observe != nil {
		s.observe(*p, forward, reverse)
	}
	if rtt, ok := p.RoundTrip(); ok {
		s.roundTrips.times.Add(plain(rtt))
		s.series.roundTrip.Observe(rtt.Seconds())
	}
	if r, ok := p.Residence(); ok {
		s.series.residence.Observe(r.Seconds())
	}
}

// needless tells whether p lacks nothing but a disciplined clock. Where both ends
// read one and the same, its error is in both stamps and cancels, so none is
// needed; but a step between them does not cancel, and a configuration that says
// that there is no clock is obeyed.
func needless(p *sample.Packet) bool {
	switch p.Near.Reason {
	case sample.NearStepped, sample.NoClock:
		return false
	case sample.OK:
		return p.Far.Reason == sample.FarUnsynchronised
	default:
		return true
	}
}

// stepped is called when CLOCK_REALTIME has jumped: the window's delays are of
// two clocks and mean nothing together.
func (s *session) stepped() {
	for _, d := range []*direction{&s.fwd, &s.rev} {
		d.delays.Reset()
		d.variation.Break()
		d.pdv.Reset()
		d.full, d.valid = false, most{}
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
