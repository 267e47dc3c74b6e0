package metric_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/promsink"
)

func all() (descs []*metric.Desc) {
	for _, g := range families.All() {
		descs = append(descs, g.Descs...)
	}
	return descs
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range all() {
		if seen[d.Name] {
			t.Errorf("%s is declared twice", d.Name)
		}
		seen[d.Name] = true
	}
}

// TestHistogramNamesHideNoOthers: a histogram x also exports x_count, x_sum and x_bucket.
func TestHistogramNamesHideNoOthers(t *testing.T) {
	names := map[string]bool{}
	for _, d := range all() {
		names[d.Name] = true
	}
	for _, d := range all() {
		for _, suffix := range []string{"_count", "_sum", "_bucket"} {
			if d.Kind == metric.Histogram && names[d.Name+suffix] {
				t.Errorf("%s%s is both a family and a part of a histogram", d.Name, suffix)
			}
		}
	}
}

func TestEveryFamilyIsDocumented(t *testing.T) {
	label := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for _, d := range all() {
		// The replies of on-demand probes have names of blackbox_exporter.
		if !strings.HasPrefix(d.Name, "oneway_") && !strings.HasPrefix(d.Name, "probe_") {
			t.Errorf("%s: no prefix", d.Name)
		}
		if !strings.HasSuffix(d.Help, ".") || len(d.Help) < 15 {
			t.Errorf("%s: help %q is not a sentence", d.Name, d.Help)
		}
		if d.Source == "" {
			t.Errorf("%s: no source", d.Name)
		}
		if (d.Kind == metric.Histogram && !d.NativeOnly) != (len(d.Buckets) > 0) {
			t.Errorf("%s: a %s with %d buckets", d.Name, d.Kind, len(d.Buckets))
		}
		if !slices.IsSorted(d.Buckets) || len(slices.Compact(slices.Clone(d.Buckets))) != len(d.Buckets) {
			t.Errorf("%s: buckets %v are not in order", d.Name, d.Buckets)
		}
		sorted := slices.Sorted(slices.Values(d.Labels))
		for i, l := range sorted {
			if !label.MatchString(l) || l == "le" || l == "quantile" || l == "job" || l == "instance" || (i > 0 && l == sorted[i-1]) {
				t.Errorf("%s: label %q", d.Name, l)
			}
		}
	}
}

// TestUnitIsInTheName: names have a base unit, and the suffix of their kind.
func TestUnitIsInTheName(t *testing.T) {
	dimensionless := []string{
		"_ratio", "_info", "_up", "_r_factor", "_mos", "_impairment", "_synchronized", "_state", "_sessions", "_fix", "_connected", "_satellites_used", "_satellites_seen", "_outstanding",
		"_successful", "_packets", "_running", "_state_reason", "_fragmented", "_hops", "_connections", "_saved", "_dscp", "_per_minute", "_points", "_success", "_detected", "_undecided", "_holiday", "_outcome",
	}
	for _, d := range all() {
		switch {
		case d.Kind == metric.Counter:
			if !strings.HasSuffix(d.Name, "_total") {
				t.Errorf("%s: a counter without _total", d.Name)
			}
		case strings.HasSuffix(d.Name, "_seconds"), strings.HasSuffix(d.Name, "_bytes"),
			strings.HasSuffix(d.Name, "_bytes_per_second"): // a rate that no counter can provide
		case !slices.ContainsFunc(dimensionless, func(s string) bool { return strings.HasSuffix(d.Name, s) }):
			t.Errorf("%s: neither a base unit nor one of %q", d.Name, dimensionless)
		}
		for _, bad := range []string{"millisecond", "_ms", "percent", "kilo", "_bits"} {
			if strings.Contains(d.Name, bad) {
				t.Errorf("%s: %q is not a base unit", d.Name, bad)
			}
		}
	}
}

func TestPromlintFindsNothing(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	for _, d := range all() {
		values := make([]string, len(d.Labels))
		for i := range values {
			values[i] = fmt.Sprint("v", i)
		}
		s := sink.Series(d, values...)
		switch d.Kind {
		case metric.Counter:
			s.Add(1)
		case metric.Gauge:
			s.Set(1)
		case metric.Histogram:
			s.Observe(1)
		}
	}
	families, err := sink.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != len(all()) {
		t.Errorf("%d families exposed, %d described", len(families), len(all()))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestKindsAreTypeNamesOfTheExposition(t *testing.T) {
	got := []string{metric.Counter.String(), metric.Gauge.String(), metric.Histogram.String(), metric.Kind(0).String()}
	if want := []string{"counter", "gauge", "histogram", "unknown"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDiscardAcceptsAllCalls(t *testing.T) {
	var sink metric.Sink = metric.Discard{}
	ran := false
	sink.Update(func() {
		ran = true
		s := sink.Series(metric.Delay, "a", "b", "c")
		s.Add(1)
		s.SetTotal(1)
		s.Set(1)
		s.Observe(1)
		s.Clear()
		s.Close()
	})
	if !ran {
		t.Error("Update did not run its function")
	}
}
