package promsink

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/testing/protocmp"

	"oneway.example/exporter/core/metric"
)

// openMetrics scrapes as a server that requests OpenMetrics, and removes created lines.
func openMetrics(t *testing.T, s *Sink) (buckets []string) {
	t.Helper()
	for line := range strings.Lines(expose(t, s, expfmt.TypeOpenMetrics)) {
		if strings.Contains(line, "_bucket{") {
			buckets = append(buckets, strings.TrimSuffix(line, "\n"))
		}
	}
	return buckets
}

func observeWith(s metric.Series, v float64, value string) {
	s.ObserveWithExemplar(v, metric.RunIDL, value)
}

func TestScrapeHasTheLastExemplarOfEachBucket(t *testing.T) {
	s := newSink(Options{})
	h := s.Series(testHistogram, "a")
	h.Observe(0.0001)
	observeWith(h, 0.05, "run-1")
	observeWith(h, 0.06, "run-2")
	h.Observe(0.07)
	observeWith(h, 7, "run-2")
	observeWith(h, math.NaN(), "run-3")
	s.Series(testHistogram, "b").Observe(1)
	want := []string{
		`test_delay_seconds_bucket{path="a",le="0.001"} 1`,
		`test_delay_seconds_bucket{path="a",le="0.1"} 4 # {run_id="run-2"} 0.06 1.7e+09`,
		`test_delay_seconds_bucket{path="a",le="+Inf"} 5 # {run_id="run-2"} 7.0 1.7e+09`,
		`test_delay_seconds_bucket{path="b",le="0.001"} 0`,
		`test_delay_seconds_bucket{path="b",le="0.1"} 0`,
		`test_delay_seconds_bucket{path="b",le="+Inf"} 1`,
	}
	if diff := cmp.Diff(want, openMetrics(t, s)); diff != "" {
		t.Errorf("OpenMetrics (-want +got):\n%s", diff)
	}
	if plain := text(t, s); strings.Contains(plain, metric.RunIDL) {
		t.Errorf("the text format has no exemplars:\n%s", plain)
	}
}

func TestTooLongExemplarIsLeftOutWithoutItsObservation(t *testing.T) {
	s := newSink(Options{})
	h := s.Series(testHistogram, "a")
	fits := strings.Repeat("ü", metric.MaxExemplarRunes-len(metric.RunIDL))
	observeWith(h, 0.05, fits)
	observeWith(h, 7, fits+"ü")
	got := openMetrics(t, s)
	if !strings.Contains(got[1], fits) {
		t.Errorf("%d characters are left out: %s", metric.MaxExemplarRunes, got[1])
	}
	if want := `test_delay_seconds_bucket{path="a",le="+Inf"} 2`; got[2] != want {
		t.Errorf("%s, want %s", got[2], want)
	}
}

func TestScrapeHasNoExemplarSetAfterItsBegin(t *testing.T) {
	s := newSink(Options{})
	h := s.Series(testHistogram, "a")
	observeWith(h, 0.05, "before")
	_, scrape := s.begin()
	observeWith(h, 0.06, "after")
	var got string
	h.(*series).read(scrape, func(_ float64, hist *histogram) {
		got = hist.exemplar(1).Label[0].GetValue()
	})
	s.scraping.Store(0)
	if got != "before" {
		t.Errorf("the scrape has the exemplar of %q", got)
	}
}

func TestNativeExemplarsAreInTheOrderOfTime(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	s := newSink(Options{NoClassic: true, Now: func() time.Time { at = at.Add(time.Second); return at }})
	h := s.Series(testHistogram, "a")
	for _, v := range []float64{7, 0.05, 0.0001} {
		observeWith(h, v, "run")
	}
	var got []float64
	for _, e := range gather(t, s)[0].Metric[0].Histogram.Exemplars {
		got = append(got, e.GetValue())
	}
	if diff := cmp.Diff([]float64{7, 0.05, 0.0001}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestExemplarsOfBucketsEqualThoseOfClientGolang compares the complete message of a histogram.
func TestExemplarsOfBucketsEqualThoseOfClientGolang(t *testing.T) {
	bounds, values := []float64{0.001, 0.1}, []float64{0.0005, 0.05, 7}
	c := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "reference", Buckets: bounds})
	s := newSink(Options{NoNative: true})
	h := s.Series(&metric.Desc{Name: "test", Kind: metric.Histogram, Help: "x", Buckets: bounds})
	for _, v := range values {
		c.(prometheus.ExemplarObserver).ObserveWithExemplar(v, prometheus.Labels{metric.RunIDL: "r"})
		observeWith(h, v, "r")
	}
	into := prometheus.NewPedanticRegistry()
	into.MustRegister(c)
	families, err := into.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := families[0].Metric[0].Histogram
	got := gather(t, s)[0].Metric[0].Histogram
	diff := cmp.Diff(want, got, protocmp.Transform(),
		protocmp.IgnoreFields(want, "created_timestamp"), protocmp.IgnoreFields(want.Bucket[0].Exemplar, "timestamp"))
	if diff != "" {
		t.Errorf("(-client_golang +ours):\n%s", diff)
	}
}

func TestObservationsWithoutExemplarDoNotAllocate(t *testing.T) {
	s := newSink(Options{})
	plain, marked := s.Series(testHistogram, "a"), s.Series(testHistogram, "b")
	observeWith(marked, 0.05, "run")
	for name, h := range map[string]metric.Series{"never had one": plain, "has one": marked} {
		h.Observe(0.05)
		if n := testing.AllocsPerRun(1000, func() { h.Observe(0.05) }); n != 0 {
			t.Errorf("%s: %v allocations per observation", name, n)
		}
	}
}
