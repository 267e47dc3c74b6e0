// Package promsink is the metric.Sink that Prometheus scrapes.
//
// # What a scrape sees
//
// A scrape sees all of what an Update does or nothing of it, and still never
// makes a writer wait for it. Copying 400,000 series under a lock would stop
// every receiver for tenths of a second; instead each scrape has a number, and
// the first writer that touches a series while a scrape is going on first puts
// the value before it aside, once. The scrape takes what was put aside, or the
// live value where nobody wrote. The only time when writers wait is the instant
// in which the number changes.
//
// # Histograms
//
// Histograms are classic and native (schema 3: a bucket is 9 % wide). They are
// written anew because client_golang's keep each native bucket twice in a
// sync.Map: some 8 kB each where this one has about 1 kB, and a path has eleven.
// The results are compared with client_golang's in the tests.
//
// An observation may bring an exemplar; each classic bucket shows its last one, which
// OpenMetrics and the protocol buffers of Prometheus have and the plain text format has
// not. Without classic buckets they are the native histogram's. Histograms that never
// had one pay a nil pointer for it.
package promsink

import (
	"cmp"
	"fmt"
	"maps"
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
	pairs    map[[2]string]*pair    // by name and value
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
	// listing is what the last scrape has shown, nil if a series was opened or closed since.
	listing *listing
}

// New makes a sink that shows its series to the scrapes of reg.
func New(reg prometheus.Registerer) (*Sink, error) { return NewWith(reg, Options{}) }

// NewWith is New with options.
func NewWith(reg prometheus.Registerer, o Options) (*Sink, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Sink{
		options: o, families: map[string]*family{}, pairs: map[[2]string]*pair{},
		spares: sync.Pool{New: func() any { return new(histogram) }},
	}
	if err := reg.Register(s); err != nil {
		return nil, fmt.Errorf("promsink: %w", err)
	}
	return s, nil
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
	one.present = f.desc.Kind == metric.Counter
	if f.desc.Kind == metric.Histogram {
		one.hist = newHistogram(len(f.desc.Buckets))
	}
	if f.desc.Kind != metric.Gauge {
		now := s.options.Now()
		if s.created == nil || now.Sub(s.created.AsTime()).Abs() >= createdGrain {
			s.created = timestamppb.New(now)
		}
		one.created = s.created
	}
	f.series[key] = one
	f.listing = nil
	return one
}

// createdGrain is how far apart created timestamps are told apart; the many
// series that a path opens at once share one.
const createdGrain = 10 * time.Millisecond

// release ends an opener's hold; the last one's ends the series.
func (s *Sink) release(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	one, f := h.series, h.family
	if one.refs--; one.refs > 0 {
		return
	}
	delete(f.series, one.key)
	f.listing = nil
	for _, l := range one.labels {
		key := [2]string{l.GetName(), l.GetValue()}
		if s.pairs[key].refs--; s.pairs[key].refs == 0 {
			delete(s.pairs, key)
		}
	}
}

// pair is a label pair that many series share; with 10,000 paths the strings
// and messages would otherwise be most of the memory.
type pair struct {
	label *dto.LabelPair
	refs  int
}

func (s *Sink) pair(name, value string) *dto.LabelPair {
	p := s.pairs[[2]string{name, value}]
	if p == nil {
		p = &pair{label: &dto.LabelPair{Name: &name, Value: &value}}
		s.pairs[[2]string{name, value}] = p
	}
	p.refs++
	return p.label
}

var (
	_ metric.Sink          = (*Sink)(nil)
	_ prometheus.Collector = (*Sink)(nil)
)

// Describe describes nothing: which families there are depends on what is
// measured (an unchecked collector).
func (s *Sink) Describe(chan<- *prometheus.Desc) {}

// Collect shows every series as it was at one instant.
func (s *Sink) Collect(ch chan<- prometheus.Metric) {
	s.scrape.Lock()
	defer s.scrape.Unlock()
	listings, scrape := s.begin()
	defer s.scraping.Store(0)
	for _, l := range listings {
		l.sort()
		all := make([]shown, 0, len(l.series))
		for _, one := range l.series {
			one.read(scrape, func(st state) {
				switch {
				case st.hist != nil:
					m := st.hist.message(one.family.desc.Buckets, s.options)
					m.CreatedTimestamp = one.created
					all = append(all, shown{series: one, hist: m})
				case st.present:
					all = append(all, shown{series: one, number: st.number})
				}
			})
		}
		for i := range all {
			ch <- &all[i]
		}
	}
}

// listing is the series of a family, as long as none is opened or closed. It belongs to the
// scrapes.
type listing struct {
	series []*series
	sorted bool
}

// begin draws the line: no Update is half done, and what is written from here on
// puts aside what was before. The time for which it stops writers does not
// depend on the number of series, but for those of families that have changed.
func (s *Sink) begin() (listings []*listing, scrape uint64) {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.families {
		if f.listing == nil {
			f.listing = &listing{series: slices.AppendSeq(make([]*series, 0, len(f.series)), maps.Values(f.series))}
		}
		listings = append(listings, f.listing)
	}
	s.last++
	s.scraping.Store(s.last)
	return listings, s.last
}

// sort puts a listing in the order of the exposition, in which the registry
// would else have to sort it at each scrape.
func (l *listing) sort() {
	if !l.sorted {
		slices.SortFunc(l.series, func(a, b *series) int { return cmp.Compare(a.key, b.key) })
		l.sorted = true
	}
}

// shown is one series in one scrape.
type shown struct {
	*series
	number float64
	hist   *dto.Histogram
}

// Desc is for the registry.
func (m *shown) Desc() *prometheus.Desc { return m.family.prom }

// Write is for the registry.
func (m *shown) Write(out *dto.Metric) error {
	out.Label = m.labels
	switch m.family.desc.Kind {
	case metric.Counter:
		out.Counter = &dto.Counter{Value: &m.number, CreatedTimestamp: m.created}
	case metric.Gauge:
		out.Gauge = &dto.Gauge{Value: &m.number}
	case metric.Histogram:
		out.Histogram = m.hist
	}
	return nil
}
