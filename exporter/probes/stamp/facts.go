package stamp

import (
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
)

// Facts are what the agent decides the state of the path by.
func (p *Prober) Facts() pathstate.Facts {
	f := pathstate.Facts{Interval: p.opts.Interval, MaxLoss: p.opts.MaxLoss}
	s := p.session.Load()
	if s == nil {
		if why, _ := p.peer.Unmeasurable(); why != "" {
			f.Decided, f.Silence = true, silenceReason(why)
		}
		return f
	}
	s.facts(&f)
	return f
}

func (s *session) facts(f *pathstate.Facts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, e := s.account, s.estimator
	f.Session, f.Measured = s.serial, s.window != nil
	if f.Replies, f.Decided = a.Up(); f.Decided && !f.Replies {
		v := s.snapshot()
		f.Silence = v.silenceReason()
	}
	f.Answered, f.Unanswered = uint32(a.RoundTripsReceived), uint32(a.RoundTripsLost)
	f.Clockless = !e.shared && e.clock.Quality(e.lastConcluded).Bound.Reason == sample.NoClock
	f.ClockWrong = e.parts.disproved || s.window != nil && s.window.parts.disproved
	f.MinimumWrong = e.contradictory
	for i, dir := range sample.Directions() {
		n, w := a.Direction(dir), &f.Ways[i]
		w.LossKnown = n.Lost.Known
		w.Received, w.Lost, w.Undecided, w.Dropped = uint32(n.Received.Value), uint32(n.Lost.Value), uint32(n.Undecided.Value), uint32(n.Dropped.Value)
		e.ways[dir].limited.way(w)
	}
}

// silenceReason is why there are no replies.
func (v *snapshot) silenceReason() pathstate.Reason {
	why := v.failureReason()
	if why == lightreason.Discarded && (v.refused.Value.OfKey() || v.refused.Value == ledger.DiscardBadHMAC) {
		return pathstate.Key
	}
	return silenceReason(why)
}

func silenceReason(why lightreason.Reason) pathstate.Reason {
	switch why {
	case lightreason.Unreachable:
		return pathstate.Unreachable
	case lightreason.Discarded:
		return pathstate.Discarded
	case lightreason.NotSent:
		return pathstate.NotSent
	case lightreason.Unresolved:
		return pathstate.Unresolved
	case lightreason.NoReply:
	}
	return pathstate.NoReply
}

var _ probe.FactSource = (*Prober)(nil)
