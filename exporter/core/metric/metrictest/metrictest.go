// Package metrictest provides a metric.Sink for tests that stores everything written to it.
package metrictest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"oneway.example/exporter/core/metric"
)

// Sink stores everything written to it. It panics on programming errors: a write to a series that its opener has
// closed or that is of another kind, a counter that would decrease, and a label value that the family does not list. The zero value is ready to use.
type Sink struct {
	mu     sync.Mutex
	series map[string]*series
}

var _ metric.Sink = (*Sink)(nil)

// series is the state that all openers of one series share.
type series struct {
	desc    *metric.Desc
	openers int
	value   float64
	present bool
	history []float64
	// exemplars are the values observed with an exemplar, by its label.
	exemplars map[string][]float64
}

// handle is one opener's reference to a series.
type handle struct {
	sink   *Sink
	key    string
	of     *series
	given  float64 // the largest total set
	closed bool
}

// Series opens a series, or adds an opener to it.
func (s *Sink) Series(d *metric.Desc, values ...string) metric.Series {
	if len(values) != len(d.Labels) {
		panic(fmt.Sprintf("%s has labels %q but was given %q", d.Name, d.Labels, values))
	}
	for i, label := range d.Labels {
		if !d.Values.Allows(label, values[i]) {
			panic(fmt.Sprintf("%s has no value %q of label %q: list it in package metric", d.Name, values[i], label))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.series == nil {
		s.series = map[string]*series{}
	}
	key := Key(d, values...)
	if s.series[key] == nil {
		s.series[key] = &series{desc: d, present: d.Kind != metric.Gauge, exemplars: map[string][]float64{}}
	}
	s.series[key].openers++
	return &handle{sink: s, key: key, of: s.series[key]}
}

// Update runs f.
func (*Sink) Update(f func()) { f() }

// Key is the name of a series for Present: its family, and its label values in braces.
func Key(d *metric.Desc, values ...string) string {
	return d.Name + "{" + strings.Join(values, ",") + "}"
}

// write runs f on the series, which must be of this kind and open.
func (h *handle) write(kind metric.Kind, f func(one *series)) {
	h.sink.mu.Lock()
	defer h.sink.mu.Unlock()
	switch {
	case h.of.desc.Kind != kind:
		panic(h.key + " is a " + h.of.desc.Kind.String())
	case h.closed:
		panic(h.key + " is used after Close")
	}
	f(h.of)
}

func (h *handle) Add(delta float64) {
	if !(delta >= 0) {
		panic(h.key + " decreases")
	}
	h.write(metric.Counter, func(one *series) { one.value += delta })
}

func (h *handle) SetTotal(total float64) {
	h.write(metric.Counter, func(one *series) {
		if total > h.given {
			one.value += total - h.given
			h.given = total
		}
	})
}

func (h *handle) Set(v float64) {
	if math.IsNaN(v) {
		h.Clear()
		return
	}
	h.write(metric.Gauge, func(one *series) {
		one.value, one.present, one.history = v, true, append(one.history, v)
	})
}

func (h *handle) Clear() {
	h.write(metric.Gauge, func(one *series) { one.value, one.present = 0, false })
}

func (h *handle) Observe(v float64) {
	h.write(metric.Histogram, func(one *series) { one.history = append(one.history, v) })
}

func (h *handle) ObserveWithExemplar(v float64, label, value string) {
	h.Observe(v)
	h.write(metric.Histogram, func(one *series) { one.exemplars[label+"="+value] = append(one.exemplars[label+"="+value], v) })
}

// Close removes the opener; a second call does nothing.
func (h *handle) Close() {
	h.sink.mu.Lock()
	defer h.sink.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	if h.of.openers--; h.of.openers == 0 {
		delete(h.sink.series, h.key)
	}
}

// get is the current state of a series; the zero value if it is not open.
func (s *Sink) get(d *metric.Desc, values []string) (one series) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.series[Key(d, values...)]; open != nil {
		one = *open
	}
	one.exemplars = maps.Clone(one.exemplars)
	return one
}

// Value is the value of a counter or gauge; false if there is none.
func (s *Sink) Value(d *metric.Desc, values ...string) (v float64, ok bool) {
	one := s.get(d, values)
	return one.value, one.present
}

// History is all values that an open gauge has had, or all observations of a histogram.
func (s *Sink) History(d *metric.Desc, values ...string) (all []float64) {
	return slices.Clip(s.get(d, values).history)
}

// Observed is the number of observations of a histogram, and their sum.
func (s *Sink) Observed(d *metric.Desc, values ...string) (count int, sum float64) {
	all := s.get(d, values).history
	for _, v := range all {
		sum += v
	}
	return len(all), sum
}

// Exemplars are the values of a histogram that were observed with an exemplar, by its label, such as "run_id=x".
func (s *Sink) Exemplars(d *metric.Desc, values ...string) map[string][]float64 {
	return s.get(d, values).exemplars
}

// All is the values of all series of a family that have one, by their labels joined with commas; 0 for a histogram.
func (s *Sink) All(d *metric.Desc) map[string]float64 {
	all := map[string]float64{}
	for key, v := range s.Present(d.Name + "{") {
		all[key[len(d.Name)+1:len(key)-1]] = v
	}
	return all
}

// Present is the values of all series that have one and whose keys begin with prefix, by Key.
func (s *Sink) Present(prefix string) map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]float64{}
	for key, one := range s.series {
		if one.present && strings.HasPrefix(key, prefix) {
			all[key] = one.value
		}
	}
	return all
}

// Open is the number of open series, with or without a value.
func (s *Sink) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.series)
}

// Keeping is a Sink that keeps series after their opener has closed them.
type Keeping struct{ Sink }

// Series opens the series twice, so that one Close does not end it.
func (k *Keeping) Series(d *metric.Desc, values ...string) metric.Series {
	k.Sink.Series(d, values...)
	return k.Sink.Series(d, values...)
}
