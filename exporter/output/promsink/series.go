package promsink

import (
	"math"
	"sync"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"oneway.example/exporter/core/metric"
)

// series is one time series, which its openers share. It is also the handle of its first opener.
type series struct {
	*variant
	labels  []*pair                // in the order of names
	created *timestamppb.Timestamp // nil: exported without it
	openers int32                  // guarded by sink.mu
	closed  bool                   // the first opener has closed it; guarded by sink.mu

	mu sync.Mutex // guards the fields below
	// seen is the last scrape that has read this series, or for which its state was put aside.
	seen uint32
	// number is the value of a counter or gauge, before the one that was put aside; given is the highest total of the first
	// opener (see SetTotal).
	number, before, given float64
	hist                  *histogram // nil: not a histogram
}

// absent is the number of a gauge without a value.
func absent() float64 { return math.NaN() }

// putAside is called before each change, with mu held: the scrape in progress must see the state before the change.
func (s *series) putAside() {
	scrape := s.sink.scraping.Load()
	if scrape == 0 || s.seen == scrape {
		return
	}
	s.seen, s.before = scrape, s.number
	if s.hist != nil {
		s.hist.before = s.sink.spares.Get().(*histogram)
		s.hist.before.copyFrom(s.hist)
	}
}

// read passes the state at the start of the scrape to show, which must not keep it.
func (s *series) read(scrape uint32, show func(number float64, hist *histogram)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.seen != scrape:
		s.seen = scrape // later writes need not put the state aside
		show(s.number, s.hist)
	case s.hist == nil:
		show(s.before, nil)
	default:
		show(0, s.hist.before)
		s.sink.spares.Put(s.hist.before)
		s.hist.before = nil
	}
}

// opener is the handle of each opener but the first one.
type opener struct {
	*series
	given  float64 // as that of series
	closed bool    // guarded by sink.mu
}

var _, _ metric.Series = (*series)(nil), (*opener)(nil)

// must panics if a call does not fit the kind of the series.
func (s *series) must(kind metric.Kind, call string) {
	if s.desc.Kind != kind {
		panic("promsink: " + s.desc.Name + ": " + call + " is for a " + kind.String())
	}
}

// Add adds to a counter.
func (s *series) Add(delta float64) {
	s.must(metric.Counter, "Add")
	if !(delta >= 0) {
		panic("promsink: " + s.desc.Name + ": Add of less than zero")
	}
	s.mu.Lock()
	s.putAside()
	s.number += delta
	s.mu.Unlock()
}

// SetTotal sets a counter to the opener's total.
func (s *series) SetTotal(total float64) { s.setTotal(&s.given, total) }

// SetTotal sets a counter to the opener's total.
func (o *opener) SetTotal(total float64) { o.setTotal(&o.given, total) }

func (s *series) setTotal(given *float64, total float64) {
	s.must(metric.Counter, "SetTotal")
	s.mu.Lock()
	if total > *given {
		s.putAside()
		s.number += total - *given
		*given = total
	}
	s.mu.Unlock()
}

// Clear makes a gauge absent.
func (s *series) Clear() { s.Set(absent()) }

// Set sets a gauge; NaN clears it.
func (s *series) Set(v float64) {
	s.must(metric.Gauge, "Set or Clear")
	s.mu.Lock()
	s.putAside()
	s.number = v
	s.mu.Unlock()
}

// Observe adds to a histogram. NaN and the infinities are dropped, since they would make the sum useless.
func (s *series) Observe(v float64) { s.observe(v, nil) }

// ObserveWithExemplar is Observe with an exemplar.
func (s *series) ObserveWithExemplar(v float64, label, value string) {
	value = cleaned(value)
	if utf8.RuneCountInString(label)+utf8.RuneCountInString(value) > metric.MaxExemplarRunes {
		s.observe(v, nil)
		return
	}
	s.observe(v, &dto.Exemplar{
		Label: []*dto.LabelPair{{Name: &label, Value: &value}},
		Value: &v, Timestamp: timestamppb.New(s.sink.options.Now()),
	})
}

func (s *series) observe(v float64, e *dto.Exemplar) {
	s.must(metric.Histogram, "Observe")
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	s.mu.Lock()
	s.putAside()
	s.hist.observe(v, s.desc.Buckets)
	if e != nil {
		s.hist.exemplify(e, s.desc.Buckets)
	}
	s.mu.Unlock()
}

// Close removes the opener; a second call does nothing.
func (s *series) Close() { s.sink.release(s, &s.closed) }

// Close removes the opener; a second call does nothing.
func (o *opener) Close() { o.sink.release(o.series, &o.closed) }
