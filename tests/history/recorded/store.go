package recorded

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// Series is a series in memory.
type Series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// Append appends a sample.
func (s *Series) Append(t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram) {
	if h != nil {
		fh = h.ToFloat(nil)
	}
	s.samples = append(s.samples, sample{t, v, fh})
}

// NewSeries makes a series that no Evaluator reads.
func NewSeries(l labels.Labels) *Series { return &Series{labels: l} }

// View is the series as an engine reads it.
func (s *Series) View() storage.Series { return view(s.labels, s.samples) }

// samples are some of a series.
type samples []chunks.Sample

func (s samples) Get(i int) chunks.Sample { return s[i] }
func (s samples) Len() int                { return len(s) }

// view is a series as the engine reads it: with copies, since it changes what it reads.
func view(l labels.Labels, some samples) storage.Series {
	return &storage.SeriesEntry{Lset: l, SampleIteratorFn: func(chunkenc.Iterator) chunkenc.Iterator { return storage.NewListSeriesIteratorWithCopy(some) }}
}

// sample is one of a series.
type sample struct {
	t  int64
	v  float64
	fh *histogram.FloatHistogram
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return s.fh }

func (s sample) Type() chunkenc.ValueType {
	if s.fh != nil {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

func (s sample) Copy() chunks.Sample {
	if s.fh != nil {
		s.fh = s.fh.Copy()
	}
	return s
}

// memory has the last hours of the series that rules read, by name.
type memory struct{ byName map[string][]*Series }

// forget removes the samples that rules do not read after last: of hours, from which days are recorded, all of two days and a half, and of the
// local time of a day.
func (m *memory) forget(last time.Time) {
	for name, all := range m.byName {
		keep := 2 * time.Hour
		if strings.HasPrefix(name, "oneway:long:") || name == rules.WholeDay.Name || name == metric.UTCOffset.Name {
			keep = 60 * time.Hour
		}
		t := last.Add(-keep).UnixMilli()
		for _, s := range all {
			i, _ := slices.BinarySearchFunc(s.samples, t, func(one chunks.Sample, t int64) int { return int(one.T() - t) })
			s.samples = append([]chunks.Sample(nil), s.samples[i:]...)
		}
		m.byName[name] = all
	}
}

// Querier reads m.
func (m *memory) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{m, mint, maxt}, nil
}

type querier struct {
	memory     *memory
	mint, maxt int64
}

func (q *querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			for _, s := range q.memory.byName[m.Value] {
				if matches(s.labels, matchers) {
					if some := q.cut(s.samples); len(some) > 0 {
						found = append(found, view(s.labels, some))
					}
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &set{all: found, at: -1}
}

func (q *querier) cut(all []chunks.Sample) []chunks.Sample {
	compare := func(one chunks.Sample, t int64) int {
		switch {
		case one.T() < t:
			return -1
		case one.T() > t:
			return 1
		}
		return 0
	}
	first, _ := slices.BinarySearchFunc(all, q.mint, compare)
	last, _ := slices.BinarySearchFunc(all, q.maxt+1, compare)
	return all[first:last]
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

var errNotSupported = errors.New("recorded: not supported")

func (q *querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNotSupported
}

func (q *querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errNotSupported
}

func (q *querier) Close() error { return nil }

type set struct {
	all []storage.Series
	at  int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *set) At() storage.Series                { return s.all[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }
