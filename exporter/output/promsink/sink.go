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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"oneway.example/exporter/core/metric"
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
	scraping atomic.Uint32
	// scrape serializes scrapes; last is the number of the last one.
	scrape sync.Mutex
	last   uint32
	// spares are histograms for states that are put aside, encoders have buffers for a family.
	spares, encoders sync.Pool

	mu       sync.Mutex // guards the fields below
	families []*family  // in the order of names
	variants map[*metric.Desc]*variant
	pairs    map[string]*pair       // by encoding
	guess    int                    // the place in its family of the last series opened or closed
	created  *timestamppb.Timestamp // the last one used
}

// New makes a sink without series.
func New(o Options) *Sink {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Sink{
		options: o, variants: map[*metric.Desc]*variant{}, pairs: map[string]*pair{},
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
	v := s.variant(d)
	labels := make([]*pair, len(values))
	for i, from := range v.permutation {
		labels[i] = s.pair(d.Labels[from], cleaned(values[from]))
	}
	at, found := v.find(labels, s.guess)
	if s.guess = at; found {
		one := v.series[at]
		one.openers++
		return &opener{series: one}
	}
	return s.open(v, at, labels)
}

// cleaned is a label value with the characters that an exposition allows. NUL is not among them, since the specification of
// OpenMetrics excludes it.
func cleaned(value string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(value, "\uFFFD"), "\x00", "\uFFFD")
}

// open opens a series with its place in the family.
func (s *Sink) open(v *variant, at int, labels []*pair) *series {
	d := v.desc
	one := &series{variant: v, labels: labels, openers: 1}
	for _, l := range labels {
		l.refs++
	}
	switch d.Kind {
	case metric.Gauge:
		one.number = absent()
	case metric.Histogram:
		one.hist = newHistogram(d)
	case metric.Counter:
	}
	if d.Kind != metric.Gauge && !d.NoCreated {
		now := s.options.Now()
		if s.created == nil || now.Sub(s.created.AsTime()).Abs() >= createdGrain {
			s.created = timestamppb.New(now)
		}
		one.created = s.created
	}
	v.insert(at, one)
	return one
}

// createdGrain is the resolution of created timestamps; the many series that a path opens at once share one.
const createdGrain = 10 * time.Millisecond

// release removes an opener, whose state is closed; the last one ends the series.
func (s *Sink) release(one *series, closed *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *closed {
		return
	}
	*closed = true
	if one.openers--; one.openers > 0 {
		return
	}
	s.guess, _ = one.find(one.labels, s.guess)
	one.remove(s.guess)
	for _, l := range one.labels {
		if l.refs--; l.refs == 0 {
			delete(s.pairs, l.encoded)
		}
	}
}

// pair is a label that many series share; with 10,000 paths copies would use most of the memory.
type pair struct {
	encoded string // see appendPair
	value   string
	refs    int
}

func (s *Sink) pair(name, value string) *pair {
	var space [128]byte
	encoded := appendPair(space[:0], name, value)
	p := s.pairs[string(encoded)]
	if p == nil {
		p = &pair{encoded: string(encoded), value: value}
		s.pairs[p.encoded] = p
	}
	return p
}

var _ metric.Sink = (*Sink)(nil)
