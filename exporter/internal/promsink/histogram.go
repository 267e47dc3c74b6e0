package promsink

import (
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
}

func newHistogram(bounds int) *histogram {
	return &histogram{classic: make([]uint64, bounds+1), native: native{schema: finestSchema}}
}

func (h *histogram) observe(v float64, bounds []float64) {
	h.classic[sort.SearchFloat64s(bounds, v)]++
	h.sum += v
	h.native.observe(v)
}

func (h *histogram) copyFrom(o *histogram) {
	h.classic = append(h.classic[:0], o.classic...)
	h.sum, h.schema, h.zero = o.sum, o.schema, o.zero
	h.positive.copyFrom(&o.positive)
	h.negative.copyFrom(&o.negative)
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
	return pointers, count + h.classic[len(bounds)]
}
