package stamp

import (
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
)

// Status says how the path is, for the landing page.
func (p *Prober) Status() probe.Status {
	p.mu.Lock()
	s, reason := p.session, p.reason
	p.mu.Unlock()
	if s == nil {
		state := "starting"
		if reason != "" {
			state = "waiting"
		}
		return probe.Status{State: state, Reason: reason}
	}
	return s.status()
}

func (s *session) status() probe.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	up, decided := s.up()
	st := probe.Status{Up: up, State: "measuring", LastSuccess: s.lastSuccess}
	switch {
	case !decided:
		st.State = "waiting for the first answer"
	case !up:
		st.State = "no answer"
		st.Reason = fmt.Sprintf("udp %s does not answer; is a STAMP reflector running there, is the port open?", s.peer)
		switch {
		case s.peerError != nil:
			st.Reason = fmt.Sprintf("udp %s: %v", s.peer, s.peerError)
		case s.lastRefused > s.lastAnswer:
			st.Reason = fmt.Sprintf("what comes from udp %s is refused: %s", s.peer, s.refused)
		}
	default:
		st.Reason = s.blemish()
	}
	st.Results = s.last.results(s.roundTrips.received)
	return st
}

// blemish names what keeps a measurement that goes on from being complete.
func (s *session) blemish() string {
	quality := s.clock.Quality(s.lastConcluded)
	switch {
	case !s.shared && quality.Bound.Reason != sample.OK:
		return "one-way delay is not valid: " + quality.Bound.Reason.String()
	case !s.shared && s.farReason != sample.OK && s.farReason != sample.Unknown:
		return "one-way delay is not valid: " + s.farReason.String()
	case s.contradictory:
		return "path_minimum is larger than the path's delays allow, or a clock was stepped: the clocks' own bounds are taken"
	case s.kind == farStateless && s.roundTrips.lost > 0:
		return "the reflector does not number its answers: losses cannot be told by direction"
	}
	return ""
}

// lastWindow is what the window before the present one found, for people.
type lastWindow struct {
	directions [2]windowFacts
	rtt        time.Duration
	any        bool
}

type windowFacts struct {
	median, bound time.Duration
	delayed       bool
	loss          float64
	lossKnown     bool
	r, off        float64
	rated         bool
	codec         string
}

// rating is R, with its bound where a person would notice the difference.
func rating(r, off float64) string {
	if off < 0.5 {
		return fmt.Sprintf("%.0f", r)
	}
	return fmt.Sprintf("%.0f ± %.0f", r, math.Ceil(off))
}

func (w *lastWindow) results(answered uint64) []probe.Result {
	if !w.any || answered == 0 {
		return nil
	}
	var out []probe.Result
	for _, d := range sample.Directions() {
		f := w.directions[d]
		if f.delayed {
			out = append(out, probe.Result{Quantity: "delay", Direction: d.String(), Value: fmt.Sprintf("%s ± %s", probe.Figures(f.median), probe.Figures(f.bound))})
		}
		if f.lossKnown {
			out = append(out, probe.Result{Quantity: "loss", Direction: d.String(), Value: fmt.Sprintf("%.2f %%", 100*f.loss)})
		}
		if f.rated {
			out = append(out, probe.Result{Quantity: "R (" + f.codec + ")", Direction: d.String(), Value: rating(f.r, f.off)})
		}
	}
	return append(out, probe.Result{Quantity: "round trip", Value: probe.Figures(w.rtt)})
}
