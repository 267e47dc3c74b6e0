package metric_test

import (
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/output/promsink"
)

func TestScopesCloseWhatTheirUserLeavesOpenOnce(t *testing.T) {
	sink := &metrictest.Sink{}
	var scopes metric.Scopes
	first, second := scopes.Add(metric.NewScope(sink, "a", "p")), scopes.Add(metric.NewScope(sink, "a", "p"))
	first.Set(metric.ProbeUp, 1)
	second.Set(metric.ProbeUp, 1)
	sink.Series(metric.SocketDrops, "0.0.0.0:862") // shared by probers of many paths
	first.Close()
	if n := sink.Open(); n != 2 {
		t.Errorf("%d series are open after one of two openers closed its series, want 2", n)
	}
	scopes.Close()
	scopes.Close()
	if _, drops := sink.Value(metric.SocketDrops, "0.0.0.0:862"); sink.Open() != 1 || !drops {
		t.Errorf("%d series are open, the series of the socket: %v, want that one only", sink.Open(), drops)
	}
	var none *metric.Scopes
	none.Add(metric.NewScope(sink, "b", "p")).Set(metric.ProbeUp, 1)
	if n := sink.Open(); n != 2 {
		t.Errorf("%d series are open, want that of the socket and that of a scope that nothing closes", n)
	}
}

// The series of a scope pass exemplars to the sink.
func TestScopeLetsExemplarsThrough(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	s := metric.NewScope(sink, "a", "saturation")
	defer s.Close()
	s.Series(metric.LoadedDelay, "forward").ObserveWithExemplar(0.05, metric.RunIDL, "a-run")
	families, err := sink.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if text := families[0].String(); !strings.Contains(text, `value:"a-run"`) {
		t.Errorf("no exemplar in %s", text)
	}
}
