// Package clocktest has what the tests of the monitors share: a clock that
// steps on command, and a sink that remembers.
package clocktest

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/metric"
)

// Clock is the system's clock (inside a synctest bubble: the bubble's) with
// steps of its own. The host's clock is never touched.
type Clock struct {
	system clock.Reader
	shift  atomic.Int64
}

// NewClock returns a clock that has not been stepped.
func NewClock() *Clock { return &Clock{system: clock.SystemReader()} }

// Read is a clock.Reader.
func (c *Clock) Read() clock.Reading {
	r := c.system()
	r.Wall = r.Wall.Add(time.Duration(c.shift.Load()))
	return r
}

// Step sets the wall clock forward by d, or back.
func (c *Clock) Step(d time.Duration) { c.shift.Add(int64(d)) }

// Sink remembers the present value of each open series.
type Sink struct {
	mu     sync.Mutex
	series map[string]*series
}

var _ metric.Sink = (*Sink)(nil)

// NewSink returns an empty sink.
func NewSink() *Sink { return &Sink{series: map[string]*series{}} }

// Series opens a series.
func (s *Sink) Series(d *metric.Desc, values ...string) metric.Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := Key(d, values...)
	if s.series[key] == nil {
		s.series[key] = &series{sink: s, key: key, present: d.Kind == metric.Counter}
	}
	s.series[key].openers++
	return s.series[key]
}

// Update runs f.
func (s *Sink) Update(f func()) { f() }

// Key is the family and the label values of a series.
func Key(d *metric.Desc, values ...string) string { return d.Name + "|" + strings.Join(values, "|") }

// Value is the value of a series; ok is false if it is absent.
func (s *Sink) Value(d *metric.Desc, values ...string) (v float64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.series[Key(d, values...)]
	if found == nil || !found.present {
		return 0, false
	}
	return found.value, true
}

// Present lists the keys of all present series that begin with prefix.
func (s *Sink) Present(prefix string) map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	present := map[string]float64{}
	for key, series := range s.series {
		if series.present && strings.HasPrefix(key, prefix) {
			present[key] = series.value
		}
	}
	return present
}

// Open counts the series that are open, present or not.
func (s *Sink) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.series)
}

type series struct {
	sink    *Sink
	key     string
	openers int
	present bool
	value   float64
}

func (s *series) change(f func()) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	f()
}

func (s *series) Add(delta float64) { s.change(func() { s.value += delta }) }

func (s *series) Set(v float64) { s.change(func() { s.value, s.present = v, true }) }

func (s *series) Observe(v float64)                          { panic("clocktest: the clock has no histogram") }
func (s *series) ObserveWithExemplar(v float64, _, _ string) { s.Observe(v) }
func (s *series) Clear()                                     { s.change(func() { s.present = false }) }

func (s *series) Close() {
	s.change(func() {
		if s.openers--; s.openers == 0 {
			delete(s.sink.series, s.key)
		}
	})
}
