// Package promsink is the metric.Sink that Prometheus scrapes.
//
// # Consistency of a scrape
//
// A scrape sees either all or none of the changes of an Update, without making a writer wait for the scrape. Copying
// 400,000 series under a lock would stop every receiver for tenths of a second; instead each scrape has a number, and
// the first writer that changes a series during a scrape puts its previous state aside, once. The scrape reads the state
// that was put aside, or the current one if there was no write. Writers wait only for the instant in which the number
// changes. The families are generated and written one after the other (Expose), so that a scrape uses the memory of the
// largest family.
//
// # Histograms
//
// Histograms are native (schema 3: a bucket is 9 % wide), and also classic if their descriptor has buckets; scrapes that
// accept no native histograms get only those with classic buckets. The implementation replaces that of client_golang,
// which keeps each native bucket twice in a sync.Map: about 8 kB per histogram, compared with 1 kB here, and a path has
// eleven. Tests compare the results with those of client_golang.
//
// An observation can have an exemplar; each classic bucket exports its last one, in OpenMetrics and in protobuf; the text
// format has none. Without classic buckets the exemplars belong to the native histogram. Histograms that never had one
// have a nil pointer.
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

// Options select what is exposed. The zero value is a sensible default.
type Options struct {
	// NoClassic leaves out the classic buckets, for servers that accept native histograms: a scrape has a tenth of the
	// bytes.
	NoClassic bool
	// NoNative leaves out the native buckets.
	NoNative bool
	// Now is the clock of created timestamps; nil: time.Now.
	Now func() time.Time
}

// Sink stores the series and exposes them to Prometheus. Make one with New.
type Sink struct {
	options Options

	// gate is read-locked by each Update, and locked at the instant in which a scrape begins: no Update is half done
	// then.
	gate sync.RWMutex
	// scraping is the number of the scrape in progress, 0 for none. It changes from zero only under the gate.
	scraping atomic.Uint64
	// scrape serializes scrapes; last is the number of the last one.
	scrape sync.Mutex
	last   uint64
	// spares are histograms for states that are put aside, encoders have buffers for a family.
	spares, encoders sync.Pool

	mu       sync.Mutex // guards the fields below
	families map[string]*family
	pairs    map[[2]string]*pair    // by name and value
	created  *timestamppb.Timestamp // the last one used
}

// family is all series of one descriptor.
type family struct {
	desc *metric.Desc
	// permutation is, for each label in the order of names, its index in the values given to Series.
	permutation []int
	series      map[string]*series
	// listing is the listing of the last scrape, nil if a series was opened or closed since.
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

// Update runs f: a scrape sees either all or none of its changes. f must not call Update and must not block.
func (s *Sink) Update(f func()) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	f()
}

// Series opens a series, or adds an opener to it. It panics if the number of values differs from the number of labels.
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

// separator sorts before every character of a label value, so that sorting by joined values is sorting by each value in
// turn.
const separator = "\x00"

// cleaned is a label value with the characters that an exposition allows.
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

// open makes a series of f for the profile of d.
func (s *Sink) open(f *family, d *metric.Desc, key string, values []string) *series {
	one := &series{sink: s, family: f, desc: d, key: key, labels: make([]*pair, 0, len(values))}
	for i, from := range f.permutation {
		one.labels = append(one.labels, s.pair(f.desc.Labels[from], values[i]))
	}
	one.present = d.Kind != metric.Gauge
	if d.Kind == metric.Histogram {
		one.hist = newHistogram(len(d.Buckets))
	}
	// A counter of profile slim has no created timestamp: about 14 bytes each would be a tenth of its scrape.
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

// createdGrain is the resolution of created timestamps; the many series that a path opens at once share one.
const createdGrain = 10 * time.Millisecond

// release removes an opener; the last one ends the series.
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

// pair is a label that many series share; with 10,000 paths copies would use most of the memory.
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
