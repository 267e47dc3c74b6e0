package loadtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
		"loss during the load": {
			Working{Parts: []working.Part{idle, {Loaded: working.Forward, Forward: working.Way{
				Delay: &working.Quantiles{P50: 0.38}, Loss: new(0.31), R: new(0.0),
			}}}},
			"idle 30 ms, working 380 ms, loss 31 %, R 92 -> 0", "not measured",
		},
		"the path dies during the load": {
			Working{Parts: []working.Part{idle, {Loaded: working.Forward, Forward: working.Way{
				Delay: &working.Quantiles{P50: 0.38}, LossLimits: &working.LossLimits{High: 0.49, Undecided: 49},
			}}}},
			"idle 30 ms, working 380 ms, loss 0.00 % to 49 %", "not measured",
		},
		"clocks unknown": {
			Working{Parts: []working.Part{blind, {Loaded: working.Forward, RoundTrip: trip(0.4)}, {Loaded: working.Reverse, RoundTrip: trip(0.9)}}},
			"round trip idle 44 ms, working 400 ms", "round trip idle 44 ms, working 900 ms",
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
