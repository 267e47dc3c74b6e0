package heavy

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/probe"
)

// status is what people are told of a prober.
type status struct {
	kind control.Kind

	mu       sync.Mutex
	due      time.Time
	idle     bool // waiting for due
	at       Progress
	told     bool     // at.Share is the kind's own word
	last     *Outcome // skipped ones included
	tried    *Outcome // the last that was not skipped
	done     *Outcome // the last completed
	refusing error    // why the far end is busy
}

func newStatus(k control.Kind) *status { return &status{kind: k} }

func (s *status) waiting(due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due, s.idle = due, true
}

func (s *status) busy(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusing = err
}

func (s *status) farBusy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing == nil {
		return errors.New("the far end is busy")
	}
	return s.refusing
}

// follow takes progress, and fills in what it leaves out.
func (s *status) follow(p Progress, planned time.Duration) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = false
	if p.Phase == "" {
		p.Phase = s.at.Phase
	}
	switch {
	case p.Share < 0 || s.told:
		p.Share = s.at.Share
	case planned > 0:
		p.Share = min(1, float64(p.Elapsed)/float64(planned))
	}
	s.at = p
	return p
}

func (s *status) share(done float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at.Share, s.told = min(max(done, 0), 1), true
}

func (s *status) conclude(o *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.told, s.refusing = Progress{}, false, nil
	// What only a report needs is not for memory.
	run, kept := *o.Run, *o
	run.Body, kept.Run, kept.Transfers = nil, &run, nil
	s.last = &kept
	if o.Result != Skipped {
		s.tried = &kept
	}
	if o.Result == Completed {
		s.done = &kept
	}
}

// of is the status at a time.
func (s *status) of(now time.Time) probe.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := probe.Status{State: s.state(now), Up: s.tried != nil && s.tried.Result == Completed}
	if s.last != nil && s.last.Result != Completed {
		st.Reason = "last run " + string(s.last.Result) + ": " + s.last.Error
	}
	if s.done == nil {
		return st
	}
	st.LastSuccess = s.done.End.Time()
	st.Results = s.done.Summary
	if st.Reason == "" && len(s.done.Notes) > 0 {
		st.Reason = s.done.Notes[0]
	}
	return st
}

func (s *status) state(now time.Time) string {
	switch {
	case !s.idle && s.at.Phase == "":
		return "starting"
	case !s.idle:
		if s.at.Share > 0 {
			return fmt.Sprintf("%s, %.0f %% done", s.at.Phase, 100*s.at.Share)
		}
		return s.at.Phase
	case s.due.IsZero():
		return "no run is due: no window ever opens"
	}
	format := "15:04"
	if s.due.Sub(now) > 20*time.Hour {
		format = "Mon 15:04"
	}
	return "next run at " + s.due.Format(format)
}
