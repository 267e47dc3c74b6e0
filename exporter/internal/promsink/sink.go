package promsink

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"oneway.example/exporter/metric"
)

// Options choose what is exposed. The zero value is right for most.
type Options struct {
	// NoClassic leaves the classic buckets out: a tenth of the octets, for
	// servers that take native histograms.
	NoClassic bool
	// NoNative leaves the native buckets out.
	NoNative bool
	// Now is the clock of created timestamps. Default time.Now.
	Now func() time.Time
}

// Sink keeps the series and shows them to Prometheus. Make one with New.
type Sink struct {
	options Options

	// gate is held for reading by each Update, and for writing in the instant in
	// which a scrape begins: no Update is then half done.
	gate sync.RWMutex
	// scraping is the number of the scrape that is going on, 0 for none. It
	// leaves zero only under the gate.
	scraping atomic.Uint64
	// scrape lets one scrape run at a time; last is the number of the last one.
	scrape sync.Mutex
	last   uint64
	// spares are histograms in which states are put aside.
	spares sync.Pool

	mu       sync.Mutex // guards what follows
	families map[string]*family
	pairs    map[pairKey]*pair
	created  *timestamppb.Timestamp // the last one given out
}

// family is all series of one descriptor.
type family struct {
	desc *metric.Desc
	prom *prometheus.Desc
	// permutation has, for each label in the order of names, its place among the
	// values given to Series.
	permutation []int
	series      map[string]*series
	// order is the series sorted as the exposition wants them, nil when one was
	// opened or closed since. It is never written to, but replaced.
	order   []*series
	version uint64
}

// New makes a sink that shows its series to the scrapes of reg.
func New(reg prometheus.Registerer) (*Sink, error) { return NewWith(reg, Options{}) }

// NewWith is New with options.
func NewWith(reg prometheus.Registerer, o Options) (*Sink, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Sink{options: o, families: map[string]*family{}, pairs: map[pairKey]*pair{}}
	if err := reg.Register(s); err != nil {
		return nil, fmt.Errorf("promsink: %w", err)
	}
	return s, nil
}

func (s *Sink) spare() *histogram {
	if h, ok := s.spares.Get().(*histogram); ok {
		return h
	}
	return new(histogram)
}

// Update runs f: a scrape sees all of what f does or nothing. f must not call
// Update again, and must not block.
func (s *Sink) Update(f func()) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	f()
}

// Series opens a series, or joins it. It panics if the number of values is not
// that of the labels, which is a fault of the program.
func (s *Sink) Series(d *metric.Desc, values ...string) metric.Series {
	if len(values) != len(d.Labels) {
		panic(fmt.Sprintf("promsink: %s has labels %q but was given values %q", d.Name, d.Labels, values))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.family(d)
	clean := make([]string, len(values))
	for i, from := range f.permutation {
		clean[i] = cleaned(values[from])
	}
	key := strings.Join(clean, separator)
	one := f.series[key]
	if one == nil {
		one = s.open(f, key, clean)
	}
	one.refs++
	return &handle{series: one}
}

// separator sorts before every character of a label value, so that sorting by
// joined values is sorting by each in turn.
const separator = "\x00"

// cleaned is what may stand in an exposition.
func cleaned(value string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(value, "\uFFFD"), separator, "\uFFFD")
}

func (s *Sink) family(d *metric.Desc) *family {
	if f := s.families[d.Name]; f != nil {
		return f
	}
	f := &family{desc: d, prom: prometheus.NewDesc(d.Name, d.Help, d.Labels, nil), series: map[string]*series{}}
	for i := range d.Labels {
		f.permutation = append(f.permutation, i)
	}
	slices.SortFunc(f.permutation, func(a, b int) int { return strings.Compare(d.Labels[a], d.Labels[b]) })
	s.families[d.Name] = f
	return f
}

func (s *Sink) open(f *family, key string, values []string) *series {
	one := &series{sink: s, family: f, key: key}
	for i, from := range f.permutation {
		one.labels = append(one.labels, s.pair(f.desc.Labels[from], values[i]))
	}
	switch f.desc.Kind {
	case metric.Histogram:
		one.created, one.hist = s.createdNow(), newHistogram(len(f.desc.Buckets))
	case metric.Counter:
		one.created, one.present = s.createdNow(), true
	case metric.Gauge:
	}
	f.series[key] = one
	f.order = nil
	f.version++
	return one
}

// createdGrain is how far apart created timestamps are told apart; the many
// series that a path opens at once share one.
const createdGrain = 10 * time.Millisecond

func (s *Sink) createdNow() *timestamppb.Timestamp {
	now := s.options.Now()
	if s.created == nil || now.Sub(s.created.AsTime()).Abs() >= createdGrain {
		s.created = timestamppb.New(now)
	}
	return s.created
}

// release is called by each opener once.
func (s *Sink) release(one *series) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.refs--; one.refs > 0 {
		return
	}
	f := one.family
	delete(f.series, one.key)
	f.order = nil
	f.version++
	for _, l := range one.labels {
		s.releasePair(l)
	}
}

// pair is a label pair that many series share; with 10,000 paths the strings
// and messages would otherwise be most of the memory.
type pair struct {
	label *dto.LabelPair
	refs  int
}

type pairKey struct{ name, value string }

func (s *Sink) pair(name, value string) *dto.LabelPair {
	p := s.pairs[pairKey{name, value}]
	if p == nil {
		p = &pair{label: &dto.LabelPair{Name: &name, Value: &value}}
		s.pairs[pairKey{name, value}] = p
	}
	p.refs++
	return p.label
}

func (s *Sink) releasePair(l *dto.LabelPair) {
	key := pairKey{l.GetName(), l.GetValue()}
	p := s.pairs[key]
	if p.refs--; p.refs == 0 {
		delete(s.pairs, key)
	}
}
