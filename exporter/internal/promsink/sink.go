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
// in which the number changes. The families are made and written one after the other
// (Expose), so that a scrape takes the memory of the largest of them.
//
// # Histograms
//
// Histograms are native (schema 3: a bucket is 9 % wide), and classic where their descriptor
// has buckets; scrapes that take no native ones are not shown those that have none. They are
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
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"oneway.example/exporter/metric"
)

// Options choose what is exposed. The zero value is right for most.
type Options struct {
	// NoClassic leaves the classic buckets out: a tenth of the bytes, for
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
	// spares are histograms in which states are put aside, encoders have the room of a family.
	spares, encoders sync.Pool

	mu       sync.Mutex // guards what follows
	families map[string]*family
	pairs    map[[2]string]*pair    // by name and value
	created  *timestamppb.Timestamp // the last one given out
}

// family is all series of one descriptor.
type family struct {
	desc *metric.Desc
	// permutation has, for each label in the order of names, its place among the
	// values given to Series.
	permutation []int
	series      map[string]*series
	// listing is what the last scrape has shown, nil if a series was opened or closed since.
	listing *listing
}

// New makes a sink without series.
func New(o Options) *Sink {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Sink{
		options: o, families: map[string]*family{}, pairs: map[[2]string]*pair{},
		spares: sync.Pool{New: func() any { return new(histogram) }},
	}
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
		one = s.open(f, d, key, clean)
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
	f := &family{desc: d, series: map[string]*series{}}
	for i := range d.Labels {
		f.permutation = append(f.permutation, i)
	}
	slices.SortFunc(f.permutation, func(a, b int) int { return strings.Compare(d.Labels[a], d.Labels[b]) })
	s.families[d.Name] = f
	return f
}

// open makes a series of f, as the profile of d has it.
func (s *Sink) open(f *family, d *metric.Desc, key string, values []string) *series {
	one := &series{sink: s, family: f, desc: d, key: key, labels: make([]*pair, 0, len(values))}
	for i, from := range f.permutation {
		one.labels = append(one.labels, s.pair(f.desc.Labels[from], values[i]))
	}
	one.present = d.Kind != metric.Gauge
	if d.Kind == metric.Histogram {
		one.hist = newHistogram(len(d.Buckets))
	}
	// A counter of profile slim has none: some 14 bytes each would be a tenth of its scrape.
	if d.Kind != metric.Gauge && d.In(metric.Slim) != d {
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
		if l.refs--; l.refs == 0 {
			delete(s.pairs, l.key)
		}
	}
}

// pair is a label that many series share; with 10,000 paths they would otherwise be most of the memory.
type pair struct {
	key     [2]string // name and value
	encoded []byte    // see pairOf
	refs    int
}

func (s *Sink) pair(name, value string) *pair {
	key := [2]string{name, value}
	p := s.pairs[key]
	if p == nil {
		p = &pair{key: key, encoded: pairOf(name, value)}
		s.pairs[key] = p
	}
	p.refs++
	return p
}

var _ metric.Sink = (*Sink)(nil)
