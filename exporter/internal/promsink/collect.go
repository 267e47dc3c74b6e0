package promsink

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"oneway.example/exporter/metric"
)

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
		s.sort(l)
		shown := make([]shown, 0, len(l.series))
		for _, one := range l.series {
			one.read(scrape, func(st state) {
				if s.hides(l.family, st) {
					return
				}
				shown = append(shown, newShown(one, st, s.options))
			})
		}
		for i := range shown {
			ch <- &shown[i]
		}
	}
}

func (*Sink) hides(f *family, st state) bool { return f.desc.Kind != metric.Histogram && !st.present }

// listing is the series of a family that a scrape shows.
type listing struct {
	family  *family
	series  []*series
	version uint64
	sorted  bool
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
		l := &listing{family: f, series: f.order, version: f.version, sorted: f.order != nil}
		if !l.sorted {
			l.series = make([]*series, 0, len(f.series))
			for _, one := range f.series {
				l.series = append(l.series, one)
			}
		}
		listings = append(listings, l)
	}
	s.last++
	s.scraping.Store(s.last)
	return listings, s.last
}

// sort puts a listing in the order of the exposition, in which the registry
// would else have to sort it at each scrape, and keeps it for the next.
func (s *Sink) sort(l *listing) {
	if l.sorted {
		return
	}
	slices.SortFunc(l.series, func(a, b *series) int { return cmp.Compare(a.key, b.key) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.family.version == l.version {
		l.family.order = l.series
	}
}

// shown is one series in one scrape.
type shown struct {
	desc    *prometheus.Desc
	kind    metric.Kind
	labels  []*dto.LabelPair
	created *timestamppb.Timestamp
	number  float64
	hist    *dto.Histogram
}

func newShown(one *series, st state, o Options) shown {
	f := one.family
	m := shown{desc: f.prom, kind: f.desc.Kind, labels: one.labels, created: one.created, number: st.number}
	if st.hist != nil {
		m.hist = st.hist.message(f.desc.Buckets, o)
		m.hist.CreatedTimestamp = one.created
	}
	return m
}

// Desc is for the registry.
func (m *shown) Desc() *prometheus.Desc { return m.desc }

// Write is for the registry.
func (m *shown) Write(out *dto.Metric) error {
	out.Label = m.labels
	switch m.kind {
	case metric.Counter:
		out.Counter = &dto.Counter{Value: &m.number, CreatedTimestamp: m.created}
	case metric.Gauge:
		out.Gauge = &dto.Gauge{Value: &m.number}
	case metric.Histogram:
		out.Histogram = m.hist
	}
	return nil
}
