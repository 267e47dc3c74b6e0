package tcpshort

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
)

// run runs the probe with a load server on loopback.
func run(t *testing.T, own Options, sink metric.Sink, limits ...string) (*loadtest.Outcome, *Result, error) {
	t.Helper()
	out, err := loadtesttest.Run(t, NewType(), loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, limits...), own, sink, nil)
	res, _ := out.Body.(*Result)
	return out, res, err
}

func TestRunWithARealLoadServerIsPublished(t *testing.T) {
	sink := &metrictest.Keeping{}
	own := DefaultOptions()
	own.FlowBytes, own.Repetitions, own.CongestionControl, own.Seed = []option.Bytes{10_000, 300_000}, 10, "reno", 7
	out, res, err := run(t, own, sink)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Sizes) != 4 || res.Seed != 7 || len(out.Notes) != 0 || len(out.Summary) != 4 {
		t.Fatalf("%+v; notes %q", res, out.Notes)
	}
	for i, d := range []string{"forward", "forward", "reverse", "reverse"} {
		z := res.Sizes[i]
		if z.Direction != d || z.FlowBytes != int64(own.FlowBytes[i%2]) || len(z.Flows) != 10 || z.Unfinished != 0 || z.CongestionControl != "reno" {
			t.Errorf("%d: %s, %d bytes, %d flows, %d unfinished, %s", i, z.Direction, z.FlowBytes, len(z.Flows), z.Unfinished, z.CongestionControl)
			continue
		}
		for _, f := range z.Flows {
			if *f.Connect <= 0 || *f.Completion <= *f.Connect || *f.Sent < z.FlowBytes || *f.Sent > z.FlowBytes+*f.Retransmitted+100 {
				t.Errorf("%s, %d bytes: %+v", d, z.FlowBytes, f)
			}
		}
		labels := []string{"a-to-b", "tcp_short", d, map[int64]string{10_000: "10000", 300_000: "300000"}[z.FlowBytes]}
		for rank, want := range map[string]*Quantile{"0.5": z.Completion.Median, "0.95": z.Completion.Tail} {
			if v, ok := sink.Value(metric.TCPCompletionQuantile, append(labels, rank)...); !ok || want == nil || v != want.Value {
				t.Errorf("%v: quantile %s is %v, %v, want %+v", labels, rank, v, ok, want)
			}
		}
		if v, ok := sink.Value(metric.TCPUnfinished, labels...); !ok || v != 0 {
			t.Errorf("%v: %v unfinished, %v", labels, v, ok)
		}
		if n, sum := sink.Observed(metric.TCPCompletion, labels...); n != 10 || sum < 10**z.Completion.Least {
			t.Errorf("%v: %d observations", labels, n)
		}
	}
	if _, err := json.Marshal(out); err != nil {
		t.Error(err)
	}
}

// The token's day has room for some flows: those are kept.
func TestFlowsEndWithTheTokensDay(t *testing.T) {
	own := DefaultOptions()
	own.FlowBytes, own.Repetitions = []option.Bytes{1_000_000}, 10
	out, res, err := run(t, own, metric.Discard{}, "per-day=6MB")
	if err != nil {
		t.Fatal(err)
	}
	measured := 0
	for _, z := range res.Sizes {
		measured += len(z.Flows)
	}
	if measured < 2 || measured > 5 || len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "of 20 flows: the token") {
		t.Errorf("%d flows; notes %q", measured, out.Notes)
	}
	if out, res, err := run(t, own, metric.Discard{}, "per-day=1MB"); err == nil || out.Reason != runreason.DayLimit || !strings.Contains(err.Error(), "a flow needs 2.066 MB") || len(res.Sizes) != 0 {
		t.Errorf("%s, %v", out.Reason, err)
	}
}

// The token's rate cuts the flows off at their limit of time: the run ends after some of them.
func TestRunEndsIfNoFlowEnds(t *testing.T) {
	own := DefaultOptions()
	own.FlowBytes, own.FlowTimeout = []option.Bytes{20_000_000}, time.Second
	sink := &metrictest.Keeping{}
	out, res, err := run(t, own, sink, "rate=10Mbit")
	if err == nil || out.Result != loadtest.Incomplete || out.Reason != runreason.Timeout || !strings.Contains(err.Error(), "3 flows one after the other did not end") {
		t.Fatalf("%s, %s, %v", out.Result, out.Reason, err)
	}
	unfinished := 0
	for _, z := range res.Sizes {
		unfinished += z.Unfinished
		if z.Completion.Median != nil || z.Completion.Least != nil || z.Unfinished != len(z.Flows) {
			t.Errorf("%+v", z)
		}
	}
	if unfinished != 3 || len(out.Notes) != 2 || !strings.Contains(out.Notes[0], "the token limits the rate") || !strings.HasPrefix(out.Notes[1], "the first unfinished flow, ") {
		t.Errorf("%d unfinished; notes %q", unfinished, out.Notes)
	}
	for _, d := range sample.Directions() {
		if v, ok := sink.Value(metric.TCPUnfinished, "a-to-b", "tcp_short", d.String(), "20000000"); v != 0 || !ok {
			t.Errorf("%v: %v of a run that did not complete", d, v)
		}
	}
}
