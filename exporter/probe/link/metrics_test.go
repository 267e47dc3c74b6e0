package link

import (
	"testing"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
)

func TestFillIsInTheTableAndTheMetricsWhileTheTestFillsItsLink(t *testing.T) {
	links, sink := NewTable(nil), &metrictest.Sink{}
	of := Use{Link: "uplink", Path: "office"}
	u := NewFill(links, of, metric.NewScope(sink, "office", "train"))
	running := func() float64 {
		v, ok := sink.Value(metric.TestRunning, "office", "train", "uplink")
		if !ok {
			t.Error("the series does not exist")
		}
		return v
	}
	u.Refresh()
	if _, used := links.Uses()[of]; used || running() != 0 {
		t.Error("a test that has not begun fills its link")
	}
	u.Begin()
	u.Begin()
	if _, used := links.Uses()[of]; !used || running() != 1 {
		t.Error("a test that has begun does not fill its link")
	}
	NewFill(links, of, metric.NewScope(sink, "office", "train")) // of a prober that a reload restarts
	if u.Refresh(); running() != 1 {
		t.Error("the metric of a test that runs was not set again")
	}
	u.Sent(1000, 0)
	if n, _ := sink.Value(metric.RunBytes, "office", "train", "forward"); n != 1000 {
		t.Errorf("%g bytes are counted forward, want 1000", n)
	}
	if _, ok := sink.Value(metric.RunBytes, "office", "train", "reverse"); ok {
		t.Error("a direction without bytes has a series")
	}
	u.End()
	first := links.Uses()[of]
	u.End()
	if u.Refresh(); running() != 0 {
		t.Error("the metric shows a test that has ended")
	}
	if links.Uses()[of] != first {
		t.Error("the link is filled after the end of its test")
	}
}
