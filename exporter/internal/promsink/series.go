package promsink

import (
	"math"
	"sync"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"oneway.example/exporter/metric"
)

// series is one time series, which its openers share.
type series struct {
	sink    *Sink
	family  *family
	desc    *metric.Desc // of the profile
	key     string
	labels  []*pair
	created *timestamppb.Timestamp
	refs    int // guarded by sink.mu

	mu sync.Mutex // guards the fields below
	state
	// seen is the last scrape that has read this series, or for which its state was put aside in before.
	seen   uint64
	before state
}

// state is the exported state of a present series: the value of a counter or gauge, or a histogram, which is nil
// otherwise.
type state struct {
	number  float64
	present bool
	hist    *histogram
}

// putAside is called before each change, with mu held: the scrape in progress must see the state before the change.
func (s *series) putAside() {
	scrape := s.sink.scraping.Load()
	if scrape == 0 || s.seen == scrape {
		return
	}
	s.seen, s.before = scrape, s.state
	if s.hist != nil {
		s.before.hist = s.sink.spares.Get().(*histogram)
		s.before.hist.copyFrom(s.hist)
	}
}

// read passes the state at the start of the scrape to show, which must not keep it.
func (s *series) read(scrape uint64, show func(state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != scrape {
		s.seen = scrape // later writes need not put the state aside
		show(s.state)
		return
	}
	show(s.before)
	if s.before.hist != nil {
		s.sink.spares.Put(s.before.hist)
	}
	s.before = state{}
}

// handle is one opener's reference to a series.
type handle struct {
	*series
	given  float64 // the highest total, see SetTotal; guarded by mu
	closed bool    // guarded by sink.mu
}

var _ metric.Series = (*handle)(nil)

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
func (h *handle) SetTotal(total float64) {
	h.must(metric.Counter, "SetTotal")
	h.mu.Lock()
	if total > h.given {
		h.putAside()
		h.number += total - h.given
		h.given = total
	}
	h.mu.Unlock()
}

// Set sets a gauge; NaN clears it.
func (s *series) Set(v float64) { s.set(v, !math.IsNaN(v)) }

// Clear makes a gauge absent.
func (s *series) Clear() { s.set(0, false) }

func (s *series) set(v float64, present bool) {
	s.must(metric.Gauge, "Set or Clear")
	s.mu.Lock()
	s.putAside()
	s.number, s.present = v, present
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

// Close releases the opener's reference; a second call does nothing.
func (h *handle) Close() { h.sink.release(h) }
