package metric_test

import (
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/internal/promsink"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/metric/metrictest"
)

func TestSlimSinkTakesTheFamiliesOfItsProfileOnly(t *testing.T) {
	var sink metrictest.Sink
	slim := metric.Slim.Sink(&sink)
	slim.Series(metric.ProbeUp, "a", "stamp").Set(1)
	slim.Series(metric.Jitter, "a", "stamp", "forward").Set(1)
	scope := metric.NewScope(slim, "a", "stamp")
	scope.Set(metric.RoundTripTimeMin, 0.01)
	scope.Set(metric.DelayMax, 0.01, "forward")
	scope.SetIf(metric.DelayMax, 0.01, false, "forward")
	scope.Drop(metric.DelayMax, "forward")
	if n := sink.Open(); n != 2 {
		t.Errorf("%d series are open, want that of probe_up and that of the smallest round trip", n)
	}
	scope.Close()
	if n := sink.Open(); n != 1 {
		t.Errorf("%d series are open after the scope was closed, want 1", n)
	}
}

func TestFullSinkIsTheSink(t *testing.T) {
	var sink metrictest.Sink
	if got := metric.Full.Sink(&sink); got != metric.Sink(&sink) {
		t.Errorf("got %T", got)
	}
	if metric.ProfileOf(&sink) != metric.Full || metric.ProfileOf(metric.Slim.Sink(&sink)) != metric.Slim {
		t.Error("the profile of the sink is not the one it was made with")
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

// TestStandInIsExportedWithoutNativeHistograms: either histogram or gauge has the delay distribution of a slim path.
func TestStandInIsExportedWithoutNativeHistograms(t *testing.T) {
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
		scope := metric.NewScope(metric.Slim.Sink(sink), "a", "stamp")
		scope.Series(metric.Delay, "forward").Observe(0.03)
		scope.Set(metric.DelayQuantile.StandIn(), 0.03, "forward", "0.95")
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
	metric.Slim.Sink(sink).Series(metric.Delay, "a", "stamp", "forward").Observe(0.03)
	metric.Full.Sink(sink).Series(metric.Delay, "b", "stamp", "forward").Observe(0.03)
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
