// Package heavytest has what tests of heavy probes need: a sink that remembers, a link of
// known rate, queue and delay in place of a far end, real sockets without control, and a
// real far end.
package heavytest

import (
	"fmt"
	"strings"
	"sync"

	"oneway.example/exporter/metric"
)

// Sink remembers what was written to it. The zero value is ready.
type Sink struct {
	mu     sync.Mutex
	series map[string]*series
}

type series struct {
	sink    *Sink
	key     string
	kind    metric.Kind
	openers int
	value   float64
	present bool
	count   int
	sum     float64
	history []float64
	// exemplars are the values that had one, by its label.
	exemplars map[string][]float64
}

// Series is metric.Sink.
func (s *Sink) Series(d *metric.Desc, values ...string) metric.Series {
	if len(values) != len(d.Labels) {
		panic(fmt.Sprintf("%s has labels %q but was given %q", d.Name, d.Labels, values))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.series == nil {
		s.series = map[string]*series{}
	}
	key := key(d, values)
	one := s.series[key]
	if one == nil {
		one = &series{sink: s, key: key, kind: d.Kind, present: d.Kind != metric.Gauge}
		s.series[key] = one
	}
	one.openers++
	return one
}

// Update is metric.Sink.
func (*Sink) Update(f func()) { f() }

func key(d *metric.Desc, values []string) string {
	return d.Name + "{" + strings.Join(values, ",") + "}"
}

func (s *series) of(kinds metric.Kind, f func()) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	switch {
	case s.kind != kinds:
		panic(s.key + " is a " + s.kind.String())
	case s.openers <= 0:
		panic(s.key + " is used after its end")
	}
	f()
}

func (s *series) Add(delta float64) {
	if delta < 0 {
		panic(s.key + " goes back")
	}
	s.of(metric.Counter, func() { s.value += delta })
}

func (s *series) Set(v float64) {
	s.of(metric.Gauge, func() { s.value, s.present, s.history = v, true, append(s.history, v) })
}

func (s *series) Observe(v float64) {
	s.of(metric.Histogram, func() { s.count, s.sum = s.count+1, s.sum+v })
}

func (s *series) ObserveWithExemplar(v float64, label, value string) {
	s.Observe(v)
	s.of(metric.Histogram, func() {
		if s.exemplars == nil {
			s.exemplars = map[string][]float64{}
		}
		name := label + "=" + value
		s.exemplars[name] = append(s.exemplars[name], v)
	})
}

func (s *series) Clear() { s.of(metric.Gauge, func() { s.present = false }) }

func (s *series) Close() {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	if s.openers--; s.openers == 0 {
		delete(s.sink.series, s.key)
	}
}

// Value of a counter or gauge; false if there is none.
func (s *Sink) Value(d *metric.Desc, values ...string) (float64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.series[key(d, values)]
	if one == nil || !one.present {
		return 0, false
	}
	return one.value, true
}

// History is all values that a gauge that is still open has had.
func (s *Sink) History(d *metric.Desc, values ...string) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.series[key(d, values)]; one != nil {
		return append([]float64(nil), one.history...)
	}
	return nil
}

// Observed is how many observations a histogram has, and their sum.
func (s *Sink) Observed(d *metric.Desc, values ...string) (count int, sum float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.series[key(d, values)]; one != nil {
		return one.count, one.sum
	}
	return 0, 0
}

// Exemplars are the values of a histogram that came with an exemplar, by its label, such
// as "run_id=x".
func (s *Sink) Exemplars(d *metric.Desc, values ...string) map[string][]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]float64{}
	if one := s.series[key(d, values)]; one != nil {
		for label, v := range one.exemplars {
			all[label] = append([]float64(nil), v...)
		}
	}
	return all
}

// All is the values of all series of a family that have one, by their labels joined with
// commas.
func (s *Sink) All(d *metric.Desc) map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]float64{}
	for key, one := range s.series {
		if name, labels, _ := strings.Cut(key, "{"); name == d.Name && one.present {
			found[strings.TrimSuffix(labels, "}")] = one.value
		}
	}
	return found
}

// Open is how many series are open.
func (s *Sink) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.series)
}

// Keeping is a Sink whose series outlive the run that closes them.
type Keeping struct{ Sink }

// Series opens it once more than is closed.
func (k *Keeping) Series(d *metric.Desc, values ...string) metric.Series {
	k.Sink.Series(d, values...)
	return k.Sink.Series(d, values...)
}
