package promsink

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"oneway.example/exporter/core/metric"
	"oneway.example/tests/testseed"
)

// reference observes into a histogram of client_golang.
func reference(t *testing.T, factor float64, bounds, values []float64) *dto.Histogram {
	t.Helper()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "reference", Buckets: bounds,
		NativeHistogramBucketFactor: factor, NativeHistogramZeroThreshold: zeroThreshold,
	})
	for _, v := range values {
		h.Observe(v)
	}
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	m.Histogram.CreatedTimestamp = nil
	return m.Histogram
}

// ours is the same by a sink.
func ours(t *testing.T, o Options, d metric.Desc, values []float64) *dto.Histogram {
	t.Helper()
	s := newSink(o)
	d.Name, d.Kind = "ours", metric.Histogram
	h := s.Series(&d)
	for _, v := range values {
		h.Observe(v)
	}
	m := gather(t, s)[0].Metric[0].Histogram
	m.CreatedTimestamp = nil
	return m
}

func TestHistogramsEqualThoseOfClientGolang(t *testing.T) {
	bounds := []float64{-0.01, 0, 0.001, 0.1, 1.5}
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	delays := func(n int) (all []float64) {
		for range n {
			all = append(all, math.Exp(rng.NormFloat64())*0.03)
		}
		return all
	}
	signed := func(n int) (all []float64) {
		for range n {
			all = append(all, rng.NormFloat64()*0.001)
		}
		return all
	}
	for name, values := range map[string][]float64{
		"nothing":             nil,
		"one":                 {0.25},
		"powers of two":       {0.5, 1, 2, 4, -0.5, -1, 0.0625},
		"around the zero":     {0, 1e-6, -1e-6, 1.0000001e-6, -1.0000001e-6, 1e-9},
		"bounds are included": {0.001, 0.1, 1.5, -0.01},
		"delays":              delays(5000),
		"signed":              signed(5000),
		"gaps":                {0.01, 0.0105, 0.013, 0.02, 0.1},
	} {
		for fine, factor := range map[bool]float64{false: 1.1, true: 1.022} {
			want, got := reference(t, factor, bounds, values), ours(t, Options{}, metric.Desc{Buckets: bounds, Fine: fine}, values)
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s, fine %v (-client_golang +ours):\n%s", name, fine, diff)
			}
		}
	}
}

// TestResolutionIsReducedBeforeMemoryGrows spreads values over more octaves than the finest schema has space for.
func TestResolutionIsReducedBeforeMemoryGrows(t *testing.T) {
	var values []float64
	for v := 2e-6; v < 1e5; v *= 1.07 {
		values = append(values, v, -v)
	}
	bounds := []float64{1}
	h := newHistogram(&metric.Desc{Buckets: bounds})
	for _, v := range values {
		h.observe(v, bounds)
	}
	if h.schema >= usualSchema {
		t.Fatalf("schema %d: the values do not test what they should", h.schema)
	}
	if len(h.positive.counts) > usualSpan || len(h.negative.counts) > usualSpan {
		t.Errorf("%d and %d buckets, want at most %d", len(h.positive.counts), len(h.negative.counts), usualSpan)
	}
	got := ours(t, Options{}, metric.Desc{Buckets: bounds}, values)
	if n := nativeCount(got); n != uint64(len(values)) {
		t.Errorf("%d of %d observations are left after merging", n, len(values))
	}
	// Merging must have the same result as observing with the coarser schema.
	direct := native{schema: h.schema, span: h.span}
	for _, v := range values {
		direct.observe(v)
	}
	for i, side := range []struct{ merged, direct *buckets }{{&h.positive, &direct.positive}, {h.negative, direct.negative}} {
		var direct, merged encoder
		direct.buckets(side.direct, positiveSpan, positiveDelta)
		merged.buckets(side.merged, positiveSpan, positiveDelta)
		if diff := cmp.Diff(direct.data, merged.data); diff != "" {
			t.Errorf("side %d (-direct +merged):\n%s", i, diff)
		}
	}
}

func TestObservationsWithoutANumberAreDropped(t *testing.T) {
	s := newSink(Options{})
	h := s.Series(testHistogram, "a")
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1} {
		h.Observe(v)
	}
	got := gather(t, s)[0].Metric[0].Histogram
	if got.GetSampleCount() != 1 || got.GetSampleSum() != 1 {
		t.Errorf("count %d sum %v, want 1 and 1", got.GetSampleCount(), got.GetSampleSum())
	}
}

func TestExtremeObservationsAreBounded(t *testing.T) {
	got := ours(t, Options{}, metric.Desc{Buckets: []float64{1}}, []float64{1.1e-6, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64})
	if n := nativeCount(got); n != 4 {
		t.Errorf("%d of 4 observations are in buckets", n)
	}
	if size := proto.Size(got); size > 2000 {
		t.Errorf("%d bytes", size)
	}
}

func TestEitherKindOfBucketsCanBeLeftOut(t *testing.T) {
	bounds, values := []float64{0.1, 1}, []float64{0.05, 0.5, 5}
	native := ours(t, Options{NoClassic: true}, metric.Desc{Buckets: bounds}, values)
	if len(native.Bucket) != 0 || native.GetSampleCount() != 3 || nativeCount(native) != 3 {
		t.Errorf("native only: %v", native)
	}
	classic := ours(t, Options{NoNative: true}, metric.Desc{Buckets: bounds}, values)
	if classic.Schema != nil || classic.GetSampleCount() != 3 || len(classic.Bucket) != 2 {
		t.Errorf("classic only: %v", classic)
	}
}
