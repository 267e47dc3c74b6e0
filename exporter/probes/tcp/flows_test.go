package tcp

import (
	"math"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/probe"
)

// shaped is a transfer whose flows receive these payloads, one for each second from first on, by the receiver's clock.
func shaped(d sample.Direction, first time.Duration, flows ...[]int64) *tcptraffic.Result {
	o := DefaultOptions()
	o.Flows, o.Duration = len(flows), time.Duration(len(flows[0]))*time.Second
	r := &tcptraffic.Result{Plan: o.plan(d, 1<<30)}
	for _, seconds := range flows {
		to := tcptraffic.FlowEnd{Ended: tcptraffic.EndedReset, First: first, Last: first + time.Duration(len(seconds))*time.Second}
		for i, n := range seconds {
			for tenth := range int64(10) {
				at := first + time.Duration(i)*time.Second + time.Duration(tenth)*minInterval
				to.Samples = append(to.Samples, tcptraffic.Sample{At: at, Payload: to.Payload + n*tenth/10})
			}
			to.Payload += n
		}
		r.Sender, r.Receiver = append(r.Sender, tcptraffic.FlowEnd{Ended: tcptraffic.EndedTime, CongestionControl: "cubic"}), append(r.Receiver, to)
	}
	return r
}

func summaryOf(lines []probe.Result) string {
	var words []string
	for _, line := range lines {
		words = append(words, strings.TrimSpace(line.Direction+" "+line.Quantity)+": "+line.Text())
	}
	return strings.Join(words, "; ")
}

// Two flows of cubic have 3 and 5 parts, two of reno 1 part each. The first second, in which reno has all, is omitted.
func TestFairnessOfKnownFlows(t *testing.T) {
	parts := func(first, n int64) []int64 { return []int64{first, n * 1e6, n * 1e6, n * 1e6, n * 1e6} }
	r := shaped(sample.Forward, 80*ms, parts(0, 3), parts(1e9, 1), parts(0, 5), parts(0, 1))
	r.Sender[1].CongestionControl, r.Sender[3].CongestionControl = "reno", "reno"
	// Nothing arrived in the first second, so the flow's first arrival is later.
	for _, i := range []int{0, 2, 3} {
		r.Receiver[i].First += time.Second
	}
	d := evaluated(r, time.Second)
	f := d.Fairness
	want := 100.0 / (4 * 36)
	if f == nil || math.Abs(f.Jain-want) > 1e-6 || f.Seconds != 5 || f.Quartiles == nil || len(f.Variants) != 2 {
		t.Fatalf("%+v", f)
	}
	for _, q := range f.Quartiles {
		if math.Abs(q-want) > 1e-6 {
			t.Errorf("quartiles %v, want %v in each second", *f.Quartiles, want)
		}
	}
	for i, want := range []Variant{
		{"cubic", 2, 0.8, 1.6, [3]float64{3e6, 4e6, 5e6}},
		{"reno", 2, 0.2, 0.4, [3]float64{1e6, 1e6, 1e6}},
	} {
		got := f.Variants[i]
		near(t, "share", &got.Share, want.Share, 1e-6)
		near(t, "of the fair share", &got.OfFair, want.OfFair, 1e-6)
		for j := range want.Throughput {
			near(t, "throughput", &got.Throughput[j], want.Throughput[j], 1e-6)
		}
		if got.CongestionControl != want.CongestionControl || got.Flows != want.Flows {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	near(t, "throughput of a flow", d.Flows[2].Throughput, 5e6, 1e-6)
	if got, want := summaryOf(d.summary()[:4]), "forward TCP throughput: 80 Mb/s; forward fairness: 0.69 (Jain, 4 flows); forward share of cubic: 0.80, 1.60 of its fair share; forward share of reno: 0.20, 0.40 of its fair share"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestSingleFlowHasNoFairness(t *testing.T) {
	if d := evaluated(steady(1, 1e6), time.Second); d.Fairness != nil || d.Flows[0].Throughput != nil {
		t.Errorf("%+v", d.Fairness)
	}
	nothing := steady(2, 1e6)
	nothing.Cut = "x"
	for i := range nothing.Receiver {
		nothing.Receiver[i] = tcptraffic.FlowEnd{Ended: tcptraffic.EndedIdle}
	}
	if d := evaluated(nothing, time.Second); d.Fairness != nil {
		t.Errorf("nothing arrived: %+v", d.Fairness)
	}
}

// A flow that a reset ended after 3 s was fair until then; a flow without any payload has no share.
func TestFairnessOfATransferThatEndedEarlyIsThatOfTheTimeInWhichAllSent(t *testing.T) {
	r := shaped(sample.Forward, 80*ms, []int64{1e6, 1e6, 1e6, 2e6, 2e6}, []int64{1e6, 1e6, 1e6})
	r.Cut, r.Sender[1].Ended = "flow 1: sender: reset, receiver: reset", tcptraffic.EndedReset
	d := evaluated(r, time.Second)
	if d.Fairness == nil || math.Abs(d.Fairness.Jain-1) > 1e-9 || d.Fairness.Seconds != 3 {
		t.Fatalf("%+v", d.Fairness)
	}
	run := &loadtest.Run{}
	d.note(run)
	if len(run.Notes) != 2 || run.Notes[1] != "forward: fairness is that of the first 3 s, in which all flows sent" {
		t.Errorf("%q", run.Notes)
	}
	r.Receiver[1] = tcptraffic.FlowEnd{Ended: tcptraffic.EndedIdle}
	if d := evaluated(r, time.Second); d.Fairness == nil || math.Abs(d.Fairness.Jain-0.5) > 1e-9 || *d.Flows[1].Throughput != 0 {
		t.Errorf("a flow without payload: %+v", d.Fairness)
	}
}

// twoWay has a long direction of 16 s and the other of 10 s, from the fourth second on. Of their clocks only that of this
// end, which receives reverse and sends forward, is known.
func twoWay(first, second sample.Direction, omit time.Duration) *TwoWay {
	const half = 20 * ms
	begin := time.Now()
	at := func(d sample.Direction, arrives time.Duration, seconds []int64) *tcptraffic.Result {
		if d == sample.Reverse {
			r := shaped(d, 200*ms, seconds)
			r.Begin = begin.Add(arrives - 200*ms)
			return r
		}
		r := shaped(d, 730*ms, seconds) // of another clock
		r.Begin = begin.Add(arrives - half)
		return r
	}
	long := at(first, 500*ms, []int64{8, 10, 10, 4, 6, 5, 7, 4, 6, 5, 3, 6, 5, 9, 9, 9})
	other := at(second, 3500*ms, []int64{30, 10, 20, 5, 28, 12, 15, 33, 14, 22})
	o := DefaultOptions()
	o.Omit = omit
	return compareDirections(long, other, Evaluate(long, &o, false).PerSecond, half, omit)
}

// The first payload to the load server was lost, or met a queue: it arrived 230 ms after sending, not 20 ms, and was acknowledged
// 250 ms after it. The true begin is within the bound.
func TestTwoWayBoundHoldsIfTheFirstPayloadIsLate(t *testing.T) {
	const half, late, truth = 20 * ms, 230 * ms, 3500 * ms
	begin := time.Now()
	long, other := shaped(sample.Reverse, 200*ms, []int64{9, 9, 9, 9, 9, 9, 9, 9}), shaped(sample.Forward, 730*ms, []int64{5, 5})
	long.Begin, other.Begin = begin.Add(-200*ms), begin.Add(truth-late)
	other.Sender[0].Samples = []tcptraffic.Sample{{At: 0, Acked: 18}, {At: 240 * ms, Acked: 18}, {At: 250 * ms, Acked: 4000}}
	o := DefaultOptions()
	x := compareDirections(long, other, Evaluate(long, &o, false).PerSecond, half, 0)
	if got := math.Abs(x.Begin - truth.Seconds()); got > x.Bound || x.Bound > 0.13 {
		t.Errorf("begin %v s ± %v, true %v", x.Begin, x.Bound, truth.Seconds())
	}
}

// The correlations were computed with NumPy.
func TestTwoWayPartsAndCorrelationOfKnownTransfers(t *testing.T) {
	for _, long := range sample.Directions() {
		other := sample.Forward + sample.Reverse - long
		for _, c := range []struct {
			omit                             time.Duration
			before, during, after, correlate float64
			of                               float64
		}{
			{0, 28.0 / 3, 5.1, 9, -0.9691836777120386, 18.9},
			{time.Second, 10, 47.0 / 9, 9, -0.9705390177882768, 159.0 / 9},
		} {
			x := twoWay(long, other, c.omit)
			if x.Begin != 3 || x.End != 13 || x.Bound != 0.02 || x.Directions[0].Direction != long.String() || x.Directions[1].Direction != other.String() {
				t.Errorf("%s: %+v", long, x)
			}
			near(t, "before", x.Directions[0].Before, c.before, 1e-9)
			near(t, "during", x.Directions[0].During, c.during, 1e-9)
			near(t, "after", x.Directions[0].After, c.after, 1e-9)
			near(t, "other during", x.Directions[1].During, c.of, 1e-9)
			if x.Directions[1].Before != nil || x.Directions[1].After != nil || len(x.Directions[1].PerSecond) != 16 || x.Directions[1].PerSecond[2] != 0 || x.Directions[1].PerSecond[3] != 30 {
				t.Errorf("the other direction: %+v", x.Directions[1])
			}
			if x.Correlation == nil || math.Abs(x.Correlation.Value-c.correlate) > 1e-9 || x.Correlation.Lower >= x.Correlation.Value || x.Correlation.Upper <= x.Correlation.Value {
				t.Errorf("correlation %+v, want %v", x.Correlation, c.correlate)
			}
		}
	}
	x := twoWay(sample.Reverse, sample.Forward, 0)
	x.Correlation = &Correlation{-0.714, -0.778, -0.621}
	if got, want := summaryOf(x.summary(new(10.0), nil)), "reverse before the overlap: 74.67 b/s, 93.3 % of the link; reverse during the overlap: 40.8 b/s, 51 % of the link; reverse after the overlap: 72 b/s, 90 % of the link; forward during the overlap: 151.2 b/s; correlation of both: -0.71 (-0.78 to -0.62)"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// A direction without a result, or one that nothing arrived of, leaves the comparison out.
func TestTwoWayNeedsBothDirections(t *testing.T) {
	o := DefaultOptions()
	one, nothing := steady(1, 1e6), steady(1, 1e6)
	nothing.Cut, nothing.Receiver[0] = "x", tcptraffic.FlowEnd{Ended: tcptraffic.EndedIdle}
	for _, second := range []*tcptraffic.Result{nil, nothing} {
		res := &Result{Directions: []*Direction{Evaluate(one, &o, false)}}
		if second != nil {
			res.Directions = append(res.Directions, Evaluate(second, &o, false))
		}
		if res.overlap(&loadtest.Run{}, []*tcptraffic.Result{one, second}, o.Omit); res.TwoWay != nil {
			t.Errorf("%+v", res.TwoWay)
		}
	}
}
