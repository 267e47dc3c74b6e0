package tcp

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
)

// run runs the probe with a load server on loopback.
func run(t *testing.T, own Options, sink metric.Sink, directions ...string) (*loadtest.Outcome, error) {
	t.Helper()
	return watched(t, own, sink, nil, directions...)
}

// watched is run with a receiver of progress.
func watched(t *testing.T, own Options, sink metric.Sink, progress func(loadtest.Progress), directions ...string) (*loadtest.Outcome, error) {
	t.Helper()
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	if len(directions) > 0 {
		shared.Directions = directions
	}
	return loadtesttest.Run(t, NewType(), shared, own, sink, progress)
}

func TestRunWithARealLoadServerIsPublished(t *testing.T) {
	own := DefaultOptions()
	own.Duration, own.Omit, own.Flows, own.CongestionControl, own.MaxBytes = 2*time.Second, 200*ms, 4, []string{"reno", "cubic"}, 1<<40
	own.LinkRate.Forward, own.LinkRate.Reverse = 1e11, 1e11
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
		if *d.Throughput < 1e6 || *d.Throughput > 1.1*float64(*d.Payload)/(d.Seconds-own.Omit.Seconds()) || len(d.PerSecond) != 2 || d.RTT == nil {
			t.Errorf("%s: %v bytes/s, %d bytes in %v s, per second %v", d.Direction, *d.Throughput, *d.Payload, d.Seconds, d.PerSecond)
		}
		fairnessIsPublished(t, sink, d, own.CongestionControl)
		for _, family := range []*metric.Desc{metric.TCPLinkRate, metric.TCPThroughput, metric.TCPRTTMin, metric.TCPRetransmitted, metric.TCPConnect} {
			if v, ok := sink.Value(family, "a-to-b", "tcp", d.Direction); !ok || v < 0 {
				t.Errorf("%s: %s is %v, %v", d.Direction, family.Name, v, ok)
			}
		}
		if v, ok := sink.Value(metric.TCPRTT, "a-to-b", "tcp", d.Direction, "0.5"); !ok || v <= 0 {
			t.Errorf("%s: median RTT %v", d.Direction, v)
		}
		// On a busy host no sample may find outstanding bytes: then there is no window.
		want, known := d.Models.Throughput["window"]
		if v, ok := sink.Value(metric.TCPModel, "a-to-b", "tcp", d.Direction, "window"); ok != known || v != want {
			t.Errorf("%s: model %v, want %v", d.Direction, v, want)
		}
		sum := 0.0
		for _, state := range []tcpstate.Limit{tcpstate.LimitNetwork, tcpstate.LimitReceiver, tcpstate.LimitSendBuffer, tcpstate.LimitApplication} {
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

// A run whose limit of bytes is less than one write sends it, and says why it has no throughput: it is no complete run.
func TestRunThatIsTooShortForAThroughputSaysSo(t *testing.T) {
	for _, together := range []bool{false, true} {
		own := DefaultOptions()
		own.MaxBytes, own.Together, own.Stamps = 100_000, together, false
		out, err := run(t, own, metric.Discard{})
		if err == nil || out.Result != loadtest.Incomplete || out.Reason != runreason.NoResult {
			t.Errorf("together %v: %v, %+v", together, err, out)
		}
		for _, d := range out.Body.(*Result).Directions {
			if *d.Payload < 50_000 {
				t.Errorf("together %v: %s: %d bytes of payload", together, d.Direction, *d.Payload)
			}
		}
		for _, d := range []string{"forward", "reverse"} {
			if !slices.ContainsFunc(loadtesttest.Directed(out.Notes), func(note string) bool {
				return strings.HasPrefix(note, d+": 9") && strings.Contains(note, " kB of 100 kB, the limit (max_bytes), was sent") && strings.HasSuffix(note, "and a throughput needs 500 ms: raise max_bytes")
			}) {
				t.Errorf("together %v: %s: notes %q", together, d, out.Notes)
			}
		}
	}
}

// A run whose part of the token's day is sent too soon does not name max_bytes, which is far above it.
func TestRunThatTheTokensDayMakesTooShortNamesTheToken(t *testing.T) {
	for _, together := range []bool{false, true} {
		own := DefaultOptions()
		own.Together, own.Stamps = together, false
		shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, "per-day=150kB")
		out, err := loadtesttest.Run(t, NewType(), shared, own, metric.Discard{}, nil)
		if err == nil || out.Reason != runreason.NoResult {
			t.Fatalf("together %v: %v", together, err)
		}
		if !slices.ContainsFunc(loadtesttest.Directed(out.Notes), func(note string) bool {
			return strings.HasPrefix(note, "forward: 7") && strings.Contains(note, " kB of 75 kB, what the token has left of its day for this transfer, was sent") && strings.HasSuffix(note, "raise per-day= of this token in its tokens_file")
		}) {
			t.Errorf("together %v: notes %q", together, out.Notes)
		}
	}
}

// A run that finds next to nothing left of the token's day says so.
func TestRunWithoutBytesOfTheDaySaysSo(t *testing.T) {
	for _, together := range []bool{false, true} {
		own := DefaultOptions()
		own.Together = together
		shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, "per-day=10B")
		out, err := loadtesttest.Run(t, NewType(), shared, own, metric.Discard{}, nil)
		if err == nil || out.Reason != runreason.DayLimit || !strings.Contains(err.Error(), "has only 10 B left of its day: let the operator of the load server raise per-day=") {
			t.Errorf("together %v: %v, %+v", together, err, out)
		}
	}
}

// fairnessIsPublished checks a direction of flows that have the names in turn.
func fairnessIsPublished(t *testing.T, sink *metrictest.Keeping, d *Direction, names []string) {
	t.Helper()
	sum, shares := 0.0, 0.0
	for i, f := range d.Flows {
		if f.CongestionControl != names[i%len(names)] {
			t.Errorf("%s: flow %d: %s", d.Direction, i, f.CongestionControl)
		}
		sum += *f.Throughput
	}
	f := d.Fairness
	if f == nil || math.Abs(sum / *d.Throughput - 1) > 1e-9 || f.Jain < 1/float64(len(d.Flows)) || f.Jain > 1 || f.Quartiles == nil || len(f.Variants) != len(names) {
		t.Fatalf("%s: the flows have %v of %v bytes/s; %+v", d.Direction, sum, *d.Throughput, f)
	}
	for _, one := range f.Variants {
		shares += one.Share
		for i, rank := range throughputRanks() {
			if v, ok := sink.Value(metric.TCPFlowThroughput, "a-to-b", "tcp", d.Direction, one.CongestionControl, rank); !ok || v != one.Throughput[i] {
				t.Errorf("%s: %s at %s: %v, want %v", d.Direction, one.CongestionControl, rank, v, one.Throughput)
			}
		}
	}
	if v, ok := sink.Value(metric.TCPFairness, "a-to-b", "tcp", d.Direction); !ok || v != f.Jain || math.Abs(shares-1) > 1e-9 {
		t.Errorf("%s: fairness %v, shares %v", d.Direction, v, shares)
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

// Of a two-way run of paced flows all seconds conserve the payload, the parts are published, and progress never exceeds the
// time that has passed.
func TestTwoWayRunWithARealLoadServerIsPublished(t *testing.T) {
	own := DefaultOptions()
	own.Duration, own.Omit, own.OverlapStart, own.OverlapDuration, own.PacingRate = 9*time.Second, 500*ms, 3*time.Second, 3*time.Second, 3_000_000
	sink, begin := &metrictest.Keeping{}, time.Now()
	out, err := watched(t, own, sink, func(p loadtest.Progress) {
		if p.Elapsed > time.Since(begin) {
			t.Errorf("%v of the plan after %v", p.Elapsed, time.Since(begin))
		}
	}, "reverse", "forward")
	if err != nil {
		t.Fatal(err)
	}
	res := out.Body.(*Result)
	x := res.TwoWay
	if x == nil || len(out.Notes) != 0 || len(x.Directions[0].PerSecond) != 9 || len(x.Directions[1].PerSecond) != 9 {
		t.Fatalf("%+v, notes %q", x, out.Notes)
	}
	t.Logf("forward from %.3f to %.3f s, ± %.6f s: %.0f and %.0f", x.Begin, x.End, x.Bound, x.Directions[0].PerSecond, x.Directions[1].PerSecond)
	sum := 0.0
	for _, rate := range x.Directions[1].PerSecond {
		sum += rate
	}
	if other := float64(*res.Directions[1].Payload); x.End <= 9 && math.Abs(sum/other-1) > 1e-9 || sum == 0 {
		t.Errorf("%v of %v bytes in the seconds", sum, other)
	}
	for _, c := range []struct {
		direction, part string
		want            *float64
	}{{"reverse", "before", x.Directions[0].Before}, {"reverse", "during", x.Directions[0].During}, {"reverse", "after", x.Directions[0].After}, {"forward", "during", x.Directions[1].During}} {
		v, ok := sink.Value(metric.TCPTwoWayThroughput, "a-to-b", "tcp", c.direction, c.part)
		if !ok || c.want == nil || v != *c.want || v <= 0 {
			t.Errorf("%s %s: %v, %v", c.direction, c.part, v, ok)
		}
	}
	for _, part := range []string{"before", "after"} {
		if v, ok := sink.Value(metric.TCPTwoWayThroughput, "a-to-b", "tcp", "forward", part); ok {
			t.Errorf("forward %s the overlap: %v", part, v)
		}
	}
	v, ok := sink.Value(metric.TCPTwoWayCorrelation, "a-to-b", "tcp")
	if ok != (x.Correlation != nil) || ok && v != x.Correlation.Value {
		t.Errorf("correlation %v, %v; %+v", v, ok, x.Correlation)
	}
	if _, err := json.Marshal(out); err != nil {
		t.Error(err)
	}
}

// A congestion control that the sending end lacks ends a run of either direction at once, also the part that waits.
func TestMissingCongestionControlEndsARunAtOnce(t *testing.T) {
	own := DefaultOptions()
	own.Duration, own.OverlapStart, own.OverlapDuration, own.Flows, own.CongestionControl = time.Minute, 40*time.Second, 10*time.Second, 4, []string{"cubic", "nosuch"}
	for _, c := range []struct {
		directions []string
		at         string
		result     loadtest.Result
		reason     string
	}{
		{[]string{"forward", "reverse"}, "forward transfer: this host: ", loadtest.Incomplete, runreason.Configuration},
		{[]string{"reverse", "forward"}, "reverse transfer: refused: ", loadtest.Refused, "bad_request"},
	} {
		begin := time.Now()
		out, err := run(t, own, metric.Discard{}, c.directions...)
		if err == nil || !strings.Contains(err.Error(), c.at) || !strings.Contains(err.Error(), "congestion control nosuch: the kernel has ") || out.Result != c.result || out.Reason != c.reason {
			t.Errorf("%s: %s, %s: %v", c.directions, out.Result, out.Reason, err)
		}
		if took := time.Since(begin); took > own.OverlapStart {
			t.Errorf("%s: ended after %v", c.directions, took)
		}
	}
}

// A clipped buffer, and an end at the limit of bytes, are notes of a completed run.
func TestNotesTellWhatMakesValuesDoubtful(t *testing.T) {
	own := DefaultOptions()
	own.Duration, own.SendBuffer, own.ReceiveBuffer, own.MaxBytes, own.PacingRate = 10*time.Second, 1<<30, 1<<30, 5_000_000, 5_000_000
	out, err := run(t, own, metric.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(loadtesttest.Directed(out.Notes), "\n")
	for _, want := range []string{"forward: partial: flow 1: sender: limit", "forward: the sending host limits the send buffer", "reverse: the receiving host limits the receive buffer"} {
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
	if err == nil || out.Result != loadtest.Incomplete || out.Reason != runreason.Timeout {
		t.Fatalf("%s, %s, %v", out.Result, out.Reason, err)
	}
	if res := out.Body.(*Result); len(res.Directions) != 1 || res.Directions[0].Partial == "" || *res.Directions[0].Throughput < 1e5 || *res.Directions[0].Throughput > 2e6 {
		t.Errorf("%+v", res.Directions[0])
	}
}
