package metric_test

import (
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/output/promsink"
)

func TestSlimScopeOpensTheFamiliesOfItsProfileOnly(t *testing.T) {
	var sink metrictest.Sink
	scope := metric.Slim.Scope(&sink, "a", "stamp")
	scope.Set(metric.ProbeUp, 1)
	scope.Set(metric.Jitter, 1, "forward")
	scope.Set(metric.RoundTripTimeMin, 0.01)
	scope.DropAll(metric.DelayMax)
	var up, most metric.Place
	scope.SetIfAt(&up, metric.ProbeUp, 1, true)
	scope.SetIfAt(&most, metric.DelayMax, 1, true, "forward")
	scope.Set(metric.DelayMax, 0.01, "forward")
	scope.SetIf(metric.DelayMax, 0.01, false, "forward")
	scope.Drop(metric.DelayMax, "forward")
	if n := sink.Open(); n != 2 {
		t.Errorf("%d series are open, want that of probe_up and that of the smallest round trip", n)
	}
	scope.Close()
	if n := sink.Open(); n != 0 {
		t.Errorf("%d series are open after the scope was closed", n)
	}
}

func TestProfileSelectsTheQuantiles(t *testing.T) {
	for _, c := range []struct {
		profile              metric.Profile
		rank                 float64
		present, classicOnly bool
	}{
		{metric.Full, 0.5, true, false},
		{metric.Full, 0.95, true, false},
		{metric.Full, 0.99, true, false},
		{metric.Slim, 0.5, true, false},
		{metric.Slim, 0.95, true, true},
		{metric.Slim, 0.99, false, false},
	} {
		d := c.profile.Quantile(metric.DelayQuantile, c.rank)
		if (d != nil) != c.present || d != nil && d.ClassicOnly != c.classicOnly {
			t.Errorf("rank %v of %v: %+v", c.rank, c.profile, d)
		}
		if d := c.profile.Quantile(metric.RoundTripTimeQuantile, c.rank); (d != nil) != (c.profile == metric.Full) {
			t.Errorf("round trip, rank %v of %v: %+v", c.rank, c.profile, d)
		}
	}
}

func TestProfilesAreFoundByName(t *testing.T) {
	for _, p := range []metric.Profile{metric.Full, metric.Slim} {
		if got, err := metric.ProfileByName(p.String()); err != nil || got != p {
			t.Errorf("%s: %v, %v", p, got, err)
		}
	}
	if _, err := metric.ProfileByName("small"); err == nil || !strings.Contains(err.Error(), "full or slim") {
		t.Errorf("error %v does not list the profiles", err)
	}
}

// TestClassicOnlyGaugeReplacesTheHistogram: either histogram or gauge has the delay distribution of a slim path.
func TestClassicOnlyGaugeReplacesTheHistogram(t *testing.T) {
	for _, c := range []struct {
		options   promsink.Options
		format    expfmt.FormatType
		histogram bool
	}{
		{promsink.Options{}, expfmt.TypeProtoDelim, true},
		{promsink.Options{}, expfmt.TypeTextPlain, false},
		{promsink.Options{}, expfmt.TypeOpenMetrics, false},
		{promsink.Options{NoNative: true}, expfmt.TypeProtoDelim, false},
	} {
		sink := promsink.New(c.options)
		scope := metric.Slim.Scope(sink, "a", "stamp")
		scope.Series(metric.Delay, "forward").Observe(0.03)
		scope.Set(metric.Slim.Quantile(metric.DelayQuantile, 0.95), 0.03, "forward", "0.95")
		var b strings.Builder
		if err := sink.Expose(&b, expfmt.NewFormat(c.format)); err != nil {
			t.Fatal(err)
		}
		histogram, gauge := strings.Contains(b.String(), metric.Delay.Name), strings.Contains(b.String(), metric.DelayQuantile.Name)
		if histogram != c.histogram || gauge == c.histogram {
			t.Errorf("%+v, %v: histogram %t, gauge %t", c.options, c.format, histogram, gauge)
		}
	}
}

func TestSlimHistogramsHaveNoClassicBuckets(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	metric.Slim.Scope(sink, "a", "stamp").Series(metric.Delay, "forward").Observe(0.03)
	metric.Full.Scope(sink, "b", "stamp").Series(metric.Delay, "forward").Observe(0.03)
	families, err := sink.Gather()
	if err != nil {
		t.Fatal(err)
	}
	slim, full := families[0].Metric[0].Histogram, families[0].Metric[1].Histogram
	if len(slim.Bucket) != 0 || len(slim.PositiveSpan) != 1 {
		t.Errorf("slim: %v", slim)
	}
	if len(full.Bucket) != len(metric.Delay.Buckets) || len(full.PositiveSpan) != 1 {
		t.Errorf("full: %v", full)
	}
}
