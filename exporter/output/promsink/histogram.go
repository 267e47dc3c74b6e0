package promsink

import (
	"iter"
	"math"
	"slices"
	"sort"
	"sync"

	dto "github.com/prometheus/client_model/go"

	"oneway.example/exporter/core/metric"
)

// histogram counts observations in classic and native buckets.
type histogram struct {
	// classic has one count per bucket, not cumulated, and one more for values above all bounds; nil without bounds.
	classic []uint64
	count   uint64
	sum     float64
	native
	// before is the state that was put aside for the scrape in progress; nil: none.
	before *histogram
	// exemplars are the last ones of the classic buckets; nil until there is one. Its elements are replaced, never
	// written to.
	exemplars []*dto.Exemplar
}

func newHistogram(d *metric.Desc) *histogram {
	h := &histogram{native: native{schema: usualSchema, span: usualSpan}}
	if d.Fine {
		h.schema, h.span = finestSchema, usualSpan<<(finestSchema-usualSchema)
	}
	if len(d.Buckets) > 0 {
		h.classic = make([]uint64, len(d.Buckets)+1)
	}
	return h
}

func (h *histogram) observe(v float64, bounds []float64) {
	if h.classic != nil {
		h.classic[sort.SearchFloat64s(bounds, v)]++
	}
	h.count++
	h.sum += v
	h.native.observe(v)
}

// exemplify sets the exemplar of the bucket of the value of e.
func (h *histogram) exemplify(e *dto.Exemplar, bounds []float64) {
	if h.exemplars == nil {
		h.exemplars = make([]*dto.Exemplar, len(bounds)+1)
	}
	h.exemplars[sort.SearchFloat64s(bounds, e.GetValue())] = e
}

func (h *histogram) copyFrom(o *histogram) {
	h.classic = append(h.classic[:0], o.classic...)
	h.count, h.sum, h.schema, h.span, h.zero = o.count, o.sum, o.schema, o.span, o.zero
	h.positive.copyFrom(&o.positive)
	switch {
	case o.negative == nil:
		h.negative = nil
	case h.negative == nil:
		h.negative = new(buckets)
		fallthrough
	default:
		h.negative.copyFrom(o.negative)
	}
	h.exemplars = slices.Clone(o.exemplars)
}

// exemplar is the last exemplar of a classic bucket; nil: none.
func (h *histogram) exemplar(bucket int) *dto.Exemplar {
	if h.exemplars == nil {
		return nil
	}
	return h.exemplars[bucket]
}

// inOrderOfTime returns the exemplars of a histogram without classic buckets: a list, of which Prometheus rejects elements
// older than their predecessors.
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

// Native histograms (Prometheus 2.40, OpenMetrics "exponential"): the upper bound of bucket k of schema n is 2^(k/2^n),
// inclusive.
const (
	// usualSchema has 8 buckets per octave, each 9 % wide, as client_golang selects for NativeHistogramBucketFactor
	// 1.1; finestSchema, of fine families, 32, each 2.2 % wide.
	usualSchema  = 3
	finestSchema = 5
	// coarsestSchema has buckets of 65536 times their lower bound.
	coarsestSchema = -4
	// zeroThreshold is 1 us: values nearer to zero are below the resolution of timestamps, whose noise would need ten
	// octaves of buckets.
	zeroThreshold = 1e-6
	// usualSpan limits the number of buckets between the lowest and the highest used one of each sign: 20 octaves, 1 us to
	// 1 s, with the usual schema, and as many octaves of fine families. Beyond it the schema gets coarser.
	usualSpan = 160
	// growBy is the step in which space for buckets is allocated.
	growBy = 8
)

// native is a sparse histogram with buckets of both signs.
type native struct {
	schema   int32
	span     int32 // the most buckets of each sign
	zero     uint64
	positive buckets
	negative *buckets // nil until the first value, which most histograms never have
}

func (n *native) observe(v float64) {
	side := &n.positive
	switch {
	case v < -zeroThreshold:
		if n.negative == nil {
			n.negative = new(buckets)
		}
		side = n.negative
	case v <= zeroThreshold:
		n.zero++
		return
	}
	key := bucketKey(math.Abs(v), n.schema)
	for n.schema > coarsestSchema {
		if first, last := side.with(key); last-first < int(n.span) {
			break
		}
		n.positive.halve()
		if n.negative != nil {
			n.negative.halve()
		}
		n.schema--
		key = halfKey(key)
	}
	side.add(key, int(n.span))
}

// fractions returns the upper bounds of the buckets in the octave (0.5, 1], less one step: 0.5 * 2^(i/2^schema).
var fractions = sync.OnceValue(func() [finestSchema + 1][]float64 {
	var all [finestSchema + 1][]float64
	for schema := range all {
		steps := 1 << schema
		for i := range steps {
			all[schema] = append(all[schema], math.Exp2(float64(i)/float64(steps)-1))
		}
	}
	return all
})

// bucketKey is the index of the bucket of v > 0.
func bucketKey(v float64, schema int32) int {
	fraction, exponent := math.Frexp(v)
	if schema > 0 {
		bounds := fractions()[schema]
		return sort.SearchFloat64s(bounds, fraction) + (exponent-1)*len(bounds)
	}
	if fraction == 0.5 {
		exponent--
	}
	shift := -schema
	return (exponent + 1<<shift - 1) >> shift
}

// halfKey is the index of the bucket of the next coarser schema that contains bucket key.
func halfKey(key int) int { return (key + 1) >> 1 }

// buckets are the counts of adjacent buckets; counts[0] is the count of bucket first.
type buckets struct {
	first  int
	counts []uint64
}

// with is the range of the buckets extended by key.
func (b *buckets) with(key int) (first, last int) {
	if len(b.counts) == 0 {
		return key, key
	}
	return min(key, b.first), max(key, b.first+len(b.counts)-1)
}

// add counts a value; it allocates only if key is outside the range so far.
func (b *buckets) add(key, most int) {
	i := key - b.first
	if i < 0 || i >= len(b.counts) {
		b.grow(key, most)
		i = key - b.first
	}
	b.counts[i]++
}

func (b *buckets) grow(key, most int) {
	first, last := b.with(key)
	length := min(most, (last-first+growBy)/growBy*growBy)
	if length <= cap(b.counts) && first == b.first {
		b.counts = b.counts[:length]
		return
	}
	counts := make([]uint64, length)
	if len(b.counts) > 0 {
		copy(counts[b.first-first:], b.counts)
	}
	b.first, b.counts = first, counts
}

// halve moves the counts to the buckets of the next coarser schema, in place.
func (b *buckets) halve() {
	if len(b.counts) == 0 {
		return
	}
	first := halfKey(b.first)
	last := halfKey(b.first + len(b.counts) - 1)
	for i, c := range b.counts {
		b.counts[i] = 0
		b.counts[halfKey(b.first+i)-first] += c
	}
	b.first, b.counts = first, b.counts[:last-first+1]
}

func (b *buckets) copyFrom(o *buckets) {
	b.first = o.first
	b.counts = append(b.counts[:0], o.counts...)
}

// runs yields the spans of buckets as encoded, each with its distance from the end of the previous one, the first from
// bucket 0. Gaps of one or two empty buckets are cheaper as zeros than as a new span.
func (b *buckets) runs() iter.Seq2[int, []uint64] {
	return func(yield func(int, []uint64) bool) {
		next := 0
		for i := 0; i < len(b.counts); i++ {
			if b.counts[i] == 0 {
				continue
			}
			end := i + 1
			for k := end; k < len(b.counts) && k-end <= 2; k++ {
				if b.counts[k] != 0 {
					end = k + 1
				}
			}
			if !yield(b.first+i-next, b.counts[i:end]) {
				return
			}
			next, i = b.first+end, end
		}
	}
}
