package loadtest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/working"
)

func TestLineOfEachDirectionTellsIdleAndWorkingDelay(t *testing.T) {
	way := func(delay, r float64) working.Way {
		return working.Way{Delay: &working.Quantiles{P50: delay}, R: &r}
	}
	trip := func(s float64) *working.Quantiles { return &working.Quantiles{P50: s} }
	idle := working.Part{Loaded: working.None, RoundTrip: trip(0.044), Forward: way(0.03, 91.5), Reverse: way(0.014, 91.9)}
	blind := working.Part{Loaded: working.None, RoundTrip: trip(0.044)}
	for name, c := range map[string]struct {
		working          Working
		forward, reverse string
	}{
		"one after the other": {
			Working{Parts: []working.Part{idle, {Loaded: working.Forward, Forward: way(0.38, 25)}, {Loaded: working.Reverse, Reverse: way(0.88, 12)}}},
			"idle 30 ms, working 380 ms, R 92 -> 25", "idle 14 ms, working 880 ms, R 92 -> 12",
		},
		"together": {
			Working{Parts: []working.Part{idle, {Loaded: working.Both, Forward: way(0.38, 25), Reverse: way(0.88, 12)}}},
			"idle 30 ms, working 380 ms, R 92 -> 25", "idle 14 ms, working 880 ms, R 92 -> 12",
		},
		"together, one direction first": {
			Working{Parts: []working.Part{
				idle,
				{Loaded: working.Forward, Packets: 1},
				{Loaded: working.Reverse, Packets: 12, Reverse: way(0.1, 60)},
				{Loaded: working.Both, Packets: 49, Forward: way(0.38, 25), Reverse: way(0.88, 12)},
			}},
			"idle 30 ms, working 380 ms, R 92 -> 25", "idle 14 ms, working 880 ms, R 92 -> 12",
		},
		"all lost in most of the time": {
			Working{Parts: []working.Part{idle, {Loaded: working.Forward, Packets: 12, Forward: way(0.38, 25)}, {Loaded: working.Both, Packets: 49}}},
			"idle 30 ms, working 380 ms, R 92 -> 25", "unknown: fewer than 10 replies",
		},
		"nothing arrives in most of the time": {
			Working{Parts: []working.Part{idle, {Loaded: working.Forward, Packets: 12, Forward: way(0.38, 25)}, {Loaded: working.Both, Packets: 49, Forward: working.Way{Loss: new(1.0)}}}},
			"loss 100 %", "unknown: fewer than 10 replies",
		},
		"loss during the load": {
			Working{Parts: []working.Part{idle, {Loaded: working.Forward, Forward: working.Way{
				Delay: &working.Quantiles{P50: 0.38}, Loss: new(0.31), R: new(0.0),
			}}}},
			"idle 30 ms, working 380 ms, loss 31 %, R 92 -> 0", "not measured",
		},
		"few packets before the load": {
			Working{Parts: []working.Part{
				{Loaded: working.None, Forward: working.Way{Delay: &working.Quantiles{P50: 0.02}, R: new(40.7), RStep: new(51.08)}},
				{Loaded: working.Forward, Forward: working.Way{Delay: &working.Quantiles{P50: 0.02}, R: new(57.0), RStep: new(26.5)}},
			}},
			"idle 20 ms, working 20 ms, R 41 -> 57 (one packet changes it by up to 51)", "not measured",
		},
		"the path dies during the load": {
			Working{Parts: []working.Part{idle, {Loaded: working.Forward, Forward: working.Way{
				Delay: &working.Quantiles{P50: 0.38}, LossLimits: &working.LossLimits{High: 0.49, Undecided: 49},
			}}}},
			"idle 30 ms, working 380 ms, loss 0.00 % to 49 %", "not measured",
		},
		"with error bounds": {
			Working{Parts: []working.Part{
				{Loaded: working.None, RoundTrip: trip(0.044), Forward: working.Way{Delay: &working.Quantiles{P50: 0.03, ErrorBound: new(0.012)}}},
				{Loaded: working.Forward, Forward: working.Way{Delay: &working.Quantiles{P50: 0.38, ErrorBound: new(0.017)}}},
			}},
			"idle 30 ms ± 12 ms, working 380 ms ± 17 ms", "not measured",
		},
		"clocks unknown": {
			Working{Parts: []working.Part{blind, {Loaded: working.Forward, RoundTrip: trip(0.4)}, {Loaded: working.Reverse, RoundTrip: trip(0.9)}}},
			"round trip idle 44 ms, working 400 ms", "round trip idle 44 ms, working 900 ms",
		},
		"clocks unknown, and a queue longer than the wait for replies": {
			Working{Parts: []working.Part{blind, {Loaded: working.Reverse, RoundTrip: trip(2.29), Reverse: working.Way{Loss: new(0.8)}}}},
			"not measured", "round trip idle 0.044 s, working 2.29 s, loss 80 %",
		},
		"no idle part": {
			Working{Parts: []working.Part{{Loaded: working.Forward, Forward: way(0.38, 25)}}},
			"working 380 ms", "not measured",
		},
		"short load": {
			Working{Parts: []working.Part{idle, {Loaded: working.Forward}}},
			"unknown: fewer than 10 replies", "not measured",
		},
	} {
		var got []string
		for _, l := range c.working.lines(sample.Directions()) {
			got = append(got, l.Quantity+" "+l.Direction+": "+l.Text())
		}
		if diff := cmp.Diff([]string{"working delay forward: " + c.forward, "working delay reverse: " + c.reverse}, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	if got := (&Working{Reason: "no reply"}).lines(sample.Directions()); len(got) > 0 {
		t.Errorf("with a reason, which is a note: %v", got)
	}
}

// The page and the gauges, and so the alert and the dashboards, have the same part of the run for a direction under its own load: the one with
// the most packets, not the one with the largest delay.
func TestGaugesOfADirectionUnderItsLoadAreOfThePartOnThePage(t *testing.T) {
	way := func(delay float64) working.Way {
		return working.Way{Delay: &working.Quantiles{P50: delay, P95: &delay, ErrorBound: new(0.001)}, Variation: &working.Quantiles{}, Loss: new(delay / 10), R: new(100 - delay), RStep: new(1.0)}
	}
	w := &Working{Parts: []working.Part{
		{Loaded: working.None, Packets: 20, Forward: way(0.03), Reverse: way(0.014)},
		{Loaded: working.Forward, Packets: 12, Forward: way(0.95), Reverse: way(0.02)},
		{Loaded: working.Reverse, Packets: 80, Forward: way(0.04), Reverse: way(0.6)},
		{Loaded: working.Both, Packets: 49, Forward: way(0.38), Reverse: way(0.88)},
	}}
	lines := w.lines(sample.Directions())
	for d, want := range []string{"idle 30.0 ms ± 1.0 ms, working 380.0 ms ± 1.0 ms, loss 3.80 %, R 100 -> 100", "idle 14.0 ms ± 1.0 ms, working 600.0 ms ± 1.0 ms, loss 6.00 %, R 100 -> 99"} {
		if got := lines[d].Text(); got != want {
			t.Errorf("line %d is %q, want %q", d, got, want)
		}
	}
	sink := &metrictest.Keeping{}
	NewValues(metric.NewScope(sink, "office", "tcp")).Replace("run", w.publish)
	for _, d := range []*metric.Desc{metric.WorkingDelay, metric.WorkingVariation, metric.WorkingLoss, metric.WorkingR, metric.WorkingRStep, metric.WorkingDelayBound} {
		shown := map[string]bool{}
		for _, direction := range sample.Directions() {
			for _, p := range w.Parts {
				labels := []string{"office", "tcp", direction.String(), string(p.Loaded)}
				if slices.Contains(d.Labels, metric.QuantileL) {
					labels = append(labels, "0.5")
				}
				if _, ok := sink.Value(d, labels...); ok {
					shown[direction.String()+" "+string(p.Loaded)] = true
				}
			}
		}
		want := "forward both,forward none,forward reverse,reverse forward,reverse none,reverse reverse"
		if got := strings.Join(slices.Sorted(maps.Keys(shown)), ","); got != want {
			t.Errorf("%s has %s, want %s", d.Name, got, want)
		}
	}
}
