package promsink

import (
	"math"
	"slices"
	"sort"

	dto "github.com/prometheus/client_model/go"
)

// histogram counts observations in classic and native buckets.
type histogram struct {
	// classic has one count a bucket, not cumulated, and one more for what is
	// above all bounds.
	classic []uint64
	sum     float64
	native
	// exemplars has the last one of each of classic's buckets; nil until there is one. What
	// it points to is never written to, but replaced.
	exemplars []*dto.Exemplar
}

func newHistogram(bounds int) *histogram {
	return &histogram{classic: make([]uint64, bounds+1), native: native{schema: finestSchema}}
}

func (h *histogram) observe(v float64, bounds []float64) {
	h.classic[sort.SearchFloat64s(bounds, v)]++
	h.sum += v
	h.native.observe(v)
}

// exemplify sets the exemplar of the bucket that the value of e falls in.
func (h *histogram) exemplify(e *dto.Exemplar, bounds []float64) {
	if h.exemplars == nil {
		h.exemplars = make([]*dto.Exemplar, len(h.classic))
	}
	h.exemplars[sort.SearchFloat64s(bounds, e.GetValue())] = e
}

func (h *histogram) copyFrom(o *histogram) {
	h.classic = append(h.classic[:0], o.classic...)
	h.sum, h.schema, h.zero = o.sum, o.schema, o.zero
	h.positive.copyFrom(&o.positive)
	h.negative.copyFrom(&o.negative)
	if o.exemplars == nil {
		h.exemplars = nil
		return
	}
	h.exemplars = append(h.exemplars[:0], o.exemplars...)
}

// message is the histogram for the exposition. The buckets are allocated in one
// piece, and the bounds are shared: a scrape builds a hundred thousand of these.
func (h *histogram) message(bounds []float64, o Options) *dto.Histogram {
	m := &dto.Histogram{SampleSum: new(h.sum)}
	var count uint64
	if o.NoClassic {
		for _, c := range h.classic {
			count += c
		}
		m.Exemplars = h.inOrderOfTime()
	} else {
		m.Bucket, count = h.classicBuckets(bounds)
	}
	m.SampleCount = new(count)
	if o.NoNative {
		return m
	}
	m.Schema, m.ZeroThreshold, m.ZeroCount = new(h.schema), new(float64(zeroThreshold)), new(h.zero)
	m.PositiveSpan, m.PositiveDelta = h.positive.spans()
	m.NegativeSpan, m.NegativeDelta = h.negative.spans()
	return m
}

func (h *histogram) classicBuckets(bounds []float64) (pointers []*dto.Bucket, count uint64) {
	buckets := make([]dto.Bucket, len(bounds))
	pointers = make([]*dto.Bucket, len(bounds))
	cumulated := make([]uint64, len(bounds))
	for i := range bounds {
		count += h.classic[i]
		cumulated[i] = count
		buckets[i].CumulativeCount = &cumulated[i]
		buckets[i].UpperBound = &bounds[i]
		pointers[i] = &buckets[i]
	}
	count += h.classic[len(bounds)]
	if h.exemplars == nil {
		return pointers, count
	}
	for i := range bounds {
		buckets[i].Exemplar = h.exemplars[i]
	}
	// The last bucket has no message but for its exemplar's sake, as in client_golang.
	if last := h.exemplars[len(bounds)]; last != nil {
		pointers = append(pointers, &dto.Bucket{
			CumulativeCount: new(count), UpperBound: new(math.Inf(1)), Exemplar: last,
		})
	}
	return pointers, count
}

// inOrderOfTime is the exemplars of a histogram without classic buckets: a list, in which
// Prometheus takes none that is older than the one before.
func (h *histogram) inOrderOfTime() (all []*dto.Exemplar) {
	for _, e := range h.exemplars {
		if e != nil {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b *dto.Exemplar) int {
		return a.Timestamp.AsTime().Compare(b.Timestamp.AsTime())
	})
	return all
}
