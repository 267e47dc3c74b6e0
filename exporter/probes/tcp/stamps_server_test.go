package tcp

import (
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/load/loadtesttest"
)

// brief is a short run with stamps.
func brief() Options {
	own := DefaultOptions()
	own.Duration, own.Omit, own.PacingRate = time.Second, 0, 5_000_000
	return own
}

func TestRunWithStampsHasDelaysAndARoundTripOfUDP(t *testing.T) {
	sink := &metrictest.Keeping{}
	out, err := run(t, brief(), sink)
	if err != nil {
		t.Fatal(err)
	}
	res := out.Body.(*Result)
	if len(res.UDP) != 2 || res.UDP[0].Arrived == 0 || res.UDP[0].Bound == nil || res.UDPRoundTrip == nil || *res.UDPRoundTrip <= 0 {
		t.Fatalf("UDP %+v, notes %q", res.UDP, out.Notes)
	}
	if v, ok := sink.Value(metric.TCPUDPRoundTrip, "a-to-b", "tcp"); !ok || v != *res.UDPRoundTrip {
		t.Errorf("round trip of UDP %v", v)
	}
	for _, d := range res.Directions {
		// Over loopback most arrivals have no timestamp.
		if d.Delay == nil || d.Delay.Samples["delay"] == 0 || d.Split == nil {
			t.Fatalf("%s: %+v %+v", d.Direction, d.Delay, d.Split)
		}
		// The same kernel has both stamps: no byte arrives before it was sent.
		if low := d.Delay.Quantiles["0.5"]; low < 0 || low > 1 {
			t.Errorf("%s: delay %v s", d.Direction, low)
		}
		if d.Split.State == "yes" {
			t.Errorf("%s: split %+v", d.Direction, d.Split)
		}
		if v, ok := sink.Value(metric.TCPDelayQuantile, "a-to-b", "tcp", d.Direction, "0.5"); !ok || v != d.Delay.Quantiles["0.5"] {
			t.Errorf("%s: median %v", d.Direction, v)
		}
	}
}

func TestRunWithoutStampsSendsNoUDPAndHasNoDelays(t *testing.T) {
	own := brief()
	own.Stamps = false
	out, err := run(t, own, metric.Discard{}, "forward")
	if err != nil {
		t.Fatal(err)
	}
	if res := out.Body.(*Result); res.UDP != nil || res.Directions[0].Delay != nil || res.Directions[0].Split != nil || out.Transfers != nil {
		t.Errorf("%+v", res)
	}
}

// The load server reserves what a session announces, so that a run with stamps must not announce more than the token has left.
func TestRunWithStampsKeepsToASmallToken(t *testing.T) {
	for limit, want := range map[string]string{"per-day=300KB": "", "per-day=30KB": "the token has only"} {
		own := brief()
		shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, limit)
		shared.Directions = []string{"forward"}
		out, err := loadtesttest.Run(t, NewType(), shared, own, metric.Discard{}, nil)
		if err == nil || out.Reason != runreason.NoResult { // loopback is too fast for a throughput
			t.Fatalf("%s: %v", limit, err)
		}
		if notes := strings.Join(out.Notes, "\n"); want != "" && !strings.Contains(notes, want) || out.ForwardBytes+out.ReverseBytes > 310_000 {
			t.Errorf("%s: %d bytes, notes %q", limit, out.ForwardBytes, notes)
		}
	}
}
