package metrictest_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
)

func TestSinkStoresWrites(t *testing.T) {
	var s metrictest.Sink
	up, sent := s.Series(metric.ProbeUp, "a", "stamp"), s.Series(metric.PacketsSent, "a", "stamp", "forward")
	delay := s.Series(metric.Delay, "a", "stamp", "forward")
	if _, ok := s.Value(metric.ProbeUp, "a", "stamp"); ok {
		t.Error("a gauge that was never set has a value")
	}
	up.Set(1)
	up.Set(0)
	sent.Add(2)
	sent.Add(3)
	delay.Observe(0.5)
	delay.ObserveWithExemplar(0.25, "run_id", "x")
	if diff := cmp.Diff([]float64{1, 0}, s.History(metric.ProbeUp, "a", "stamp")); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if n, sum := s.Observed(metric.Delay, "a", "stamp", "forward"); n != 2 || sum != 0.75 {
		t.Errorf("%d observations of %v, want 2 of 0.75", n, sum)
	}
	if diff := cmp.Diff(map[string][]float64{"run_id=x": {0.25}}, s.Exemplars(metric.Delay, "a", "stamp", "forward")); diff != "" {
		t.Errorf("exemplars (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"a,stamp,forward": 5}, s.All(metric.PacketsSent)); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	up.Set(math.NaN())
	want := map[string]float64{metrictest.Key(metric.PacketsSent, "a", "stamp", "forward"): 5}
	if diff := cmp.Diff(want, s.Present("oneway_packets_")); diff != "" {
		t.Errorf("present (-want +got):\n%s", diff)
	}
	if v, ok := s.Value(metric.ProbeUp, "a", "stamp"); ok {
		t.Errorf("got %v, want no value after NaN", v)
	}
}

func TestSeriesIsPresentUntilAllOpenersClosedIt(t *testing.T) {
	var s metrictest.Sink
	one, two := s.Series(metric.ProbeUp, "a", "stamp"), s.Series(metric.ProbeUp, "a", "stamp")
	one.Set(1)
	one.Close()
	one.Close()
	if v, ok := s.Value(metric.ProbeUp, "a", "stamp"); !ok || v != 1 {
		t.Errorf("%v, %v, want 1: the other opener has it open", v, ok)
	}
	two.Close()
	if n := s.Open(); n != 0 {
		t.Errorf("%d series are open", n)
	}
}

func TestKeepingKeepsClosedSeries(t *testing.T) {
	var s metrictest.Keeping
	one := s.Series(metric.ProbeUp, "a", "stamp")
	one.Set(1)
	one.Close()
	if v, ok := s.Value(metric.ProbeUp, "a", "stamp"); !ok || v != 1 {
		t.Errorf("%v, %v, want 1", v, ok)
	}
}

func TestProgrammingErrorsPanic(t *testing.T) {
	var s metrictest.Sink
	gauge, counter := s.Series(metric.ProbeUp, "a", "stamp"), s.Series(metric.PacketsSent, "a", "stamp", "forward")
	closed := s.Series(metric.ProbeUp, "b", "stamp")
	s.Series(metric.ProbeUp, "b", "stamp") // another opener has it open
	closed.Close()
	for name, fault := range map[string]func(){
		"use after Close":  func() { closed.Set(1) },
		"add to a gauge":   func() { gauge.Add(1) },
		"total of a gauge": func() { gauge.SetTotal(1) },
		"set a counter":    func() { counter.Set(1) },
		"go back":          func() { counter.Add(-1) },
		"add no number":    func() { counter.Add(math.NaN()) },
		"observe":          func() { counter.Observe(1) },
		"too few labels":   func() { s.Series(metric.PacketsSent, "a") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			fault()
		}()
	}
}
