package agent

import (
	"sync"
	"time"

	"oneway.example/exporter/agent/eventlog"
	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/probe"
)

// pathStates are the states of the paths by their light probes: the one decision for the series, the status and the page.
type pathStates struct {
	sink   metric.Sink
	events *eventlog.Log
	since  time.Time

	misnamed *misnamed

	mu  sync.Mutex // guards the fields below
	all map[*task]*pathState
}

// pathState is the state of a path by one probe.
type pathState struct {
	judge         pathstate.Judge
	state, reason metric.Series
	// bad: it is, or was last, degraded or down, and not up since.
	bad bool
}

func newPathStates(sink metric.Sink, events *eventlog.Log, wrong *misnamed) *pathStates {
	return &pathStates{sink: sink, events: events, misnamed: wrong, since: time.Now(), all: map[*task]*pathState{}}
}

// put puts the light probes of a plan in force. Those that continue keep their states.
func (s *pathStates) put(p *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.all
	s.all = make(map[*task]*pathState, len(p.jobs))
	s.sink.Update(func() {
		for _, j := range p.jobs {
			if _, ok := j.running().(probe.FactSource); !ok {
				continue
			}
			one := gone[j.task]
			delete(gone, j.task)
			if one == nil {
				one = &pathState{state: s.sink.Series(metric.PathState, j.target.Path, j.target.Probe), reason: s.sink.Series(metric.PathStateReason, j.target.Path, j.target.Probe)}
				one.publish()
			}
			s.all[j.task] = one
		}
		for _, one := range gone {
			one.state.Close()
			one.reason.Close()
		}
	})
}

// publish decides the states. Load tests fill the links of the tested paths.
func (s *pathStates) publish(tested map[string]time.Time) {
	now := time.Since(s.since)
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, one := range s.all {
		f := t.facts()
		_, under := tested[t.target.Path]
		f.OtherHost = s.misnamed.reason(t.target.Path) != ""
		before := one.judge.Reason()
		one.judge.Decide(now, &f, under)
		if kind := one.changed(before); kind != "" {
			s.events.OfPath(kind, t.target.Path, time.Now(), one.judge.Reason().Sentence())
		}
	}
	s.sink.Update(func() {
		for _, one := range s.all {
			one.publish()
		}
	})
}

func (p *pathState) publish() {
	why := p.judge.Reason()
	p.state.Set(float64(why.State()))
	p.reason.Set(float64(why))
}

// changed is the event of a change of the reason; empty: there is none. What is found when a path begins is no event: it may have been so before.
func (p *pathState) changed(before pathstate.Reason) event.Kind {
	was, now := before.State(), p.judge.Reason().State()
	if was == now && before != pathstate.NoData {
		return ""
	}
	recovered := p.bad && now == pathstate.Up
	p.bad = now >= pathstate.Degraded || p.bad && !recovered
	switch {
	case recovered:
		return event.Recovered
	case was == now || before == pathstate.NoData:
	case now == pathstate.Down:
		return event.Down
	case now == pathstate.Degraded && was < pathstate.Degraded:
		return event.Degraded
	}
	return ""
}

// facts are what the task's probe has measured.
func (t *task) facts() (f pathstate.Facts) {
	if _, err := t.unit.state(); err != nil {
		return pathstate.Facts{NotRunning: true}
	}
	if source, ok := t.running().(probe.FactSource); ok {
		f = source.Facts()
	}
	return f
}

// reasonOf is why the path of a task has its state; known is false for a load test.
func (s *pathStates) reasonOf(t *task) (why pathstate.Reason, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[t]
	if one == nil {
		return pathstate.NoData, false
	}
	return one.judge.Reason(), true
}

// healthOf is the health that represents the state of a path.
func healthOf(why pathstate.Reason) Health {
	if why == pathstate.NoData {
		return Starting
	}
	if why == pathstate.NotRunning {
		return Failed
	}
	return map[pathstate.State]Health{pathstate.Up: Up, pathstate.Unknown: Impaired, pathstate.Degraded: Degraded, pathstate.Down: Down}[why.State()]
}

// judged takes why the path of a light probe has its state.
func (s *ProbeStatus) judged(why pathstate.Reason) {
	s.PathState, s.PathStateReason = why.State().String(), why.String()
	if s.Health != Failed {
		s.Health = healthOf(why)
	}
	if s.Reason == "" && why.State() != pathstate.Up && why != pathstate.NoData {
		s.Cause, s.Reason = why.String(), why.Sentence()
	}
}
