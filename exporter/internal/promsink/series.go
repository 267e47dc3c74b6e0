package promsink

import (
	"math"
	"sync"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"oneway.example/exporter/metric"
)

// series is one time series, shared by its openers.
type series struct {
	sink    *Sink
	family  *family
	key     string
	labels  []*dto.LabelPair
	created *timestamppb.Timestamp
	refs    int // guarded by sink.mu

	mu sync.Mutex // guards what follows
	value
	hist *histogram
	// seen is the last scrape that has read this series, or for which its state
	// was put aside in before.
	seen   uint64
	before state
}

// value is a counter's or gauge's.
type value struct {
	number  float64
	present bool
}

// state is what a scrape shows; hist is a copy.
type state struct {
	value
	hist *histogram
}

// putAside is called before each change, with mu held: the scrape that is going
// on shall see what was before it.
func (s *series) putAside() {
	scrape := s.sink.scraping.Load()
	if scrape == 0 || s.seen == scrape {
		return
	}
	s.seen = scrape
	s.before.value = s.value
	if s.hist != nil {
		s.before.hist = s.sink.spare()
		s.before.hist.copyFrom(s.hist)
	}
}

// read shows the state as it was when the scrape began to show, which must not keep it.
func (s *series) read(scrape uint64, show func(state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != scrape {
		s.seen = scrape // nothing needs to be put aside any more
		show(state{s.value, s.hist})
		return
	}
	show(s.before)
	if s.before.hist != nil {
		s.sink.spares.Put(s.before.hist)
	}
	s.before = state{}
}

// handle is one opener's hold on a series.
type handle struct {
	*series
	once sync.Once
}

var _ metric.Series = (*handle)(nil)

// Add adds to a counter.
func (s *series) Add(delta float64) {
	if s.family.desc.Kind != metric.Counter || !(delta >= 0) {
		panic("promsink: " + s.family.desc.Name + ": Add is for counters, and never of less than zero")
	}
	s.mu.Lock()
	s.putAside()
	s.number += delta
	s.mu.Unlock()
}

// Set sets a gauge. What is no number has no value: NaN clears.
func (s *series) Set(v float64) { s.set(value{v, !math.IsNaN(v)}) }

// Clear makes a gauge absent.
func (s *series) Clear() { s.set(value{}) }

func (s *series) set(v value) {
	if s.family.desc.Kind != metric.Gauge {
		panic("promsink: " + s.family.desc.Name + ": Set and Clear are for gauges")
	}
	s.mu.Lock()
	s.putAside()
	s.value = v
	s.mu.Unlock()
}

// Observe adds to a histogram. NaN and the infinities are no observations and
// are dropped: one of them would spoil the sum for good.
func (s *series) Observe(v float64) { s.observe(v, nil) }

// ObserveWithExemplar is Observe, and says where the value comes from.
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
	if s.hist == nil {
		panic("promsink: " + s.family.desc.Name + ": Observe is for histograms")
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	s.mu.Lock()
	s.putAside()
	s.hist.observe(v, s.family.desc.Buckets)
	if e != nil {
		s.hist.exemplify(e, s.family.desc.Buckets)
	}
	s.mu.Unlock()
}

// Close gives the opener's hold back; a second call does nothing.
func (h *handle) Close() { h.once.Do(func() { h.sink.release(h.series) }) }
