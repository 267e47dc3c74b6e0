package metric

import (
	"slices"
	"strings"
	"sync"
)

// Scope is the set of series of one object with a start and an end: a path, a clock, a link. It opens each series at its
// first use and closes all of them together. It is safe for concurrent use, but a series must not be written to while it
// is dropped, and after Close no method except Close may be called. Make one with NewScope.
type Scope struct {
	sink    Sink
	profile Profile // of the sink
	lead    []string

	mu   sync.Mutex // guards open; held while the sink opens and closes
	open map[scopeKey]Series
}

// scopeKey identifies a series: its family, and its labels after the leading ones.
type scopeKey struct {
	desc *Desc
	more string
}

// NewScope makes a scope without series. All its series have the label values lead first. A nil sink is Discard.
func NewScope(sink Sink, lead ...string) *Scope {
	if sink == nil {
		sink = Discard{}
	}
	return &Scope{sink: sink, profile: ProfileOf(sink), lead: slices.Clip(lead), open: map[scopeKey]Series{}}
}

// Series is the series of d with the leading label values and more: the same one each time, opened by the first call.
// Only that call allocates, unless more is longer than 128 bytes. After Close it returns a series that discards.
func (s *Scope) Series(d *Desc, more ...string) Series {
	if d = d.In(s.profile); d == nil {
		return discarded{}
	}
	var space [128]byte
	joined := join(space[:0], more)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.open[scopeKey{d, string(joined)}]
	switch {
	case s.open == nil:
		return discarded{} // after Close
	case one == nil:
		one = s.sink.Series(d, append(s.lead, more...)...)
		s.open[scopeKey{d, string(joined)}] = one
	}
	return one
}

// Flag is the value of a Boolean gauge, 1 or 0.
func Flag(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Set sets a gauge.
func (s *Scope) Set(d *Desc, v float64, more ...string) { s.Series(d, more...).Set(v) }

// SetIf sets a gauge if the value is known, and clears it if not.
func (s *Scope) SetIf(d *Desc, v float64, known bool, more ...string) {
	if known {
		s.Set(d, v, more...)
	} else if one := s.opened(d, more, false); one != nil {
		one.Clear()
	}
}

// Total is Series.SetTotal. A total of zero also opens the counter, so that its first increase is visible.
func (s *Scope) Total(d *Desc, total float64, more ...string) { s.Series(d, more...).SetTotal(total) }

// Drop closes a series if it is open. The next use opens a new one.
func (s *Scope) Drop(d *Desc, more ...string) {
	if one := s.opened(d, more, true); one != nil {
		one.Close()
	}
}

// opened is a series, or nil if it is not open; forget removes it from the scope.
func (s *Scope) opened(d *Desc, more []string, forget bool) Series {
	if d = d.In(s.profile); d == nil {
		return nil
	}
	var space [128]byte
	joined := join(space[:0], more)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.open[scopeKey{d, string(joined)}]
	if forget {
		delete(s.open, scopeKey{d, string(joined)})
	}
	return one
}

// join appends the values, each with a NUL after it.
func join(to []byte, values []string) []byte {
	for _, v := range values {
		to = append(append(to, v...), 0)
	}
	return to
}

// Renew closes s and returns a scope with the same series, whose totals start at zero: the counters of a source that
// restarts continue from their values.
func (s *Scope) Renew() *Scope {
	next := NewScope(s.sink, s.lead...)
	s.mu.Lock()
	for key := range s.open {
		labels := strings.Split(key.more, "\x00")
		next.Series(key.desc, labels[:len(labels)-1]...)
	}
	s.mu.Unlock()
	s.Close()
	return next
}

// Update is Sink.Update.
func (s *Scope) Update(f func()) { s.sink.Update(f) }

// Close closes all series in one Update, so it must not be called within one. A second call does nothing.
func (s *Scope) Close() {
	s.mu.Lock()
	all := s.open
	s.open = nil
	s.mu.Unlock()
	s.sink.Update(func() {
		for _, one := range all {
			one.Close()
		}
	})
}
