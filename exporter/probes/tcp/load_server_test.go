package tcp

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clock/static"
	estimate "oneway.example/exporter/estimate/tcp"
	"oneway.example/exporter/loadtest"
	"oneway.example/exporter/loadtest/loadtesttest"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/metric/metrictest"
	"oneway.example/exporter/probe"
)

// run runs the probe with a load server on loopback.
func run(t *testing.T, own Options, sink metric.Sink, limits ...string) (*loadtest.Outcome, error) {
	t.Helper()
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, limits...)
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: sink, Clock: static.New(time.Millisecond, metric.Discard{})}
	k, err := NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	return loadtest.RunOnce(t.Context(), env, probe.Target{Path: "a-to-b", Probe: "tcp", Peer: "127.0.0.1"}, shared, k, nil, nil)
}

func TestRunWithARealLoadServerIsPublished(t *testing.T) {
	own := DefaultOptions()
	own.Duration, own.Omit, own.Flows, own.CongestionControl, own.MaxBytes = 2*time.Second, 200*ms, 2, []string{"reno", "cubic"}, 1<<40
	sink := &metrictest.Keeping{}
	out, err := run(t, own, sink)
	if err != nil {
		t.Fatal(err)
	}
	res := out.Body.(*Result)
	if len(res.Directions) != 2 || len(out.Notes) != 0 {
		t.Fatalf("%d directions, notes %q", len(res.Directions), out.Notes)
	}
	for _, d := range res.Directions {
		if *d.Throughput < 1e6 || *d.Throughput > 1.1*float64(d.Payload)/(d.Seconds-own.Omit.Seconds()) || len(d.PerSecond) != 2 || d.RTT == nil {
			t.Errorf("%s: %v bytes/s, %d bytes in %v s, per second %v", d.Direction, *d.Throughput, d.Payload, d.Seconds, d.PerSecond)
		}
		if d.Flows[0].CongestionControl != "reno" || d.Flows[1].CongestionControl != "cubic" {
			t.Errorf("%s: %s, %s", d.Direction, d.Flows[0].CongestionControl, d.Flows[1].CongestionControl)
		}
		for _, family := range []*metric.Desc{metric.TCPThroughput, metric.TCPRTTMin, metric.TCPRetransmitted, metric.TCPConnect} {
			if v, ok := sink.Value(family, "a-to-b", "tcp", d.Direction); !ok || v < 0 {
				t.Errorf("%s: %s is %v, %v", d.Direction, family.Name, v, ok)
			}
		}
		if v, ok := sink.Value(metric.TCPRTT, "a-to-b", "tcp", d.Direction, "0.5"); !ok || v <= 0 {
			t.Errorf("%s: median RTT %v", d.Direction, v)
		}
		if v, ok := sink.Value(metric.TCPModel, "a-to-b", "tcp", d.Direction, "window"); !ok || v <= 0 {
			t.Errorf("%s: model %v", d.Direction, v)
		}
		sum := 0.0
		for _, state := range []estimate.Limit{estimate.LimitNetwork, estimate.LimitReceiver, estimate.LimitSendBuffer, estimate.LimitApplication} {
			v, _ := sink.Value(metric.TCPLimited, "a-to-b", "tcp", d.Direction, string(state))
			sum += v
		}
		if sum < 0.99 || sum > 1.2 { // the kernel counts the time in its ticks
			t.Errorf("%s: shares of the limits are %v together", d.Direction, sum)
		}
	}
	if _, err := json.Marshal(out); err != nil {
		t.Error(err)
	}
}

func TestRunOfBothDirectionsTogether(t *testing.T) {
	own := DefaultOptions()
	own.Duration, own.Omit, own.Together, own.MaxBytes = time.Second, 0, true, 1<<40
	begin := time.Now()
	out, err := run(t, own, metric.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if res := out.Body.(*Result); len(res.Directions) != 2 || res.Directions[0].Direction != "forward" || *res.Directions[1].Throughput <= 0 {
		t.Errorf("%+v", res.Directions)
	}
	t.Logf("%v", time.Since(begin))
}

// A clipped buffer, and an end at the limit of bytes, are notes of a completed run.
func TestNotesTellWhatMakesValuesDoubtful(t *testing.T) {
	own := DefaultOptions()
	own.Duration, own.SendBuffer, own.ReceiveBuffer, own.MaxBytes = 10*time.Second, 1<<30, 1<<30, 5_000_000
	out, err := run(t, own, metric.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(out.Notes, "\n")
	for _, want := range []string{"forward: partial: flow 0: sender: limit", "forward: the sending host limits the send buffer", "reverse: the receiving host limits the receive buffer"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes without %q:\n%s", want, notes)
		}
	}
	if sum := out.ForwardBytes + out.ReverseBytes; sum > 10_000_000 || sum < 3_000_000 {
		t.Errorf("%d IP bytes", sum)
	}
}

// A duration that is too short for the bytes makes the run incomplete, with partial results.
func TestRunThatDoesNotMoveItsBytesIsPartial(t *testing.T) {
	own := DefaultOptions()
	own.Duration, own.Omit, own.Bytes, own.PacingRate = time.Second, 0, 10_000_000, 1_000_000
	out, err := run(t, own, metric.Discard{})
	if err == nil || out.Result != loadtest.Incomplete || out.Reason != loadtest.ReasonTimeout {
		t.Fatalf("%s, %s, %v", out.Result, out.Reason, err)
	}
	if res := out.Body.(*Result); len(res.Directions) != 1 || res.Directions[0].Partial == "" || *res.Directions[0].Throughput < 1e5 || *res.Directions[0].Throughput > 2e6 {
		t.Errorf("%+v", res.Directions[0])
	}
}
