package tcp

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
)

const ms = time.Millisecond

// steady is a transfer of some flows that each receive rate bytes a second for 5 s, from 80 ms on, as their windows
// allow; in the first second half of it. RTT grows from 100 ms.
func steady(flows int, rate int64) *tcptraffic.Result {
	o := DefaultOptions()
	o.Flows, o.Duration = flows, 5*time.Second
	r := &tcptraffic.Result{Plan: o.plan(sample.Forward, 1<<30), Connect: []time.Duration{30 * ms, 10 * ms, 20 * ms}}
	for range flows {
		from := tcptraffic.FlowEnd{Ended: tcptraffic.EndedTime, CongestionControl: "cubic"}
		to := tcptraffic.FlowEnd{Ended: tcptraffic.EndedReset, First: 80 * ms, Last: 5080 * ms}
		for at := time.Duration(0); at <= 5080*ms; {
			elapsed := max(0, at-80*ms)
			got := rate * int64(elapsed) / int64(time.Second)
			if got -= rate / 2 * int64(min(elapsed, time.Second)) / int64(time.Second); got < 0 {
				got = 0
			}
			to.Samples = append(to.Samples, tcptraffic.Sample{At: at, Payload: got})
			if at <= 5*time.Second {
				from.Samples = append(from.Samples, tcptraffic.Sample{
					At: at, RTT: 100*ms + at/50, Busy: at * 9 / 10, RwndLimited: at * 6 / 10, SndbufLimited: at / 10,
				})
			}
			to.Payload = got
			if at < traceFor {
				at += traceInterval
			} else {
				at += minInterval
			}
		}
		to.Payload = rate * 9 / 2
		to.Final = tcpsocket.Info{SegmentsIn: 300, ReceivedCE: 3, Length: 500}
		from.Payload = to.Payload + 1000
		from.Final = tcpsocket.Info{Sent: 1000, Retransmitted: 25, MinRTT: 99 * ms, Delivered: 200, DeliveredCE: 4, Negotiated: tcpsocket.ECN, RTOs: 1, Length: 500, MSS: 1448}
		r.Sender, r.Receiver = append(r.Sender, from), append(r.Receiver, to)
	}
	return r
}

func evaluated(r *tcptraffic.Result, omit time.Duration) *Direction {
	o := DefaultOptions()
	o.Omit = omit
	return Evaluate(r, &o, false)
}

func near(t *testing.T, what string, got *float64, want, share float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > share*want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestValuesAreThoseOfTheSamples(t *testing.T) {
	d := evaluated(steady(3, 1_000_000), time.Second)
	near(t, "throughput", d.Throughput, 3e6, 0.001) // the slow first second is left out
	if len(d.PerSecond) != 5 || math.Abs(d.PerSecond[0]-1.5e6) > 5e3 || math.Abs(d.PerSecond[4]-3e6) > 5e3 || d.Seconds != 5 || *d.Payload != 13_500_000 {
		t.Errorf("per second %v in %v s, %d bytes", d.PerSecond, d.Seconds, *d.Payload)
	}
	// From 120 ms after one second to 200 ms at the end, evenly: samples of the trace do not weigh more.
	for i, want := range []float64{0.140, 0.160, 0.180} {
		near(t, "RTT", &d.RTT[i], want, 0.02)
	}
	near(t, "least RTT", d.RTTMin, 0.099, 0)
	near(t, "retransmitted", d.Retransmitted, 0.025, 0)
	near(t, "echoed", d.Echoed, 0.02, 0)
	near(t, "marked", d.Marked, 0.01, 0)
	near(t, "connect", d.Connect, 0.020, 0)
	for state, want := range map[tcpstate.Limit]float64{tcpstate.LimitReceiver: 0.6, tcpstate.LimitSendBuffer: 0.1, tcpstate.LimitNetwork: 0.2, tcpstate.LimitApplication: 0.1} {
		if got := d.Limited[state]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
	old := steady(1, 1e6)
	old.Receiver[0].Final.Length = 248 // of kernel 6.17
	if d := evaluated(old, 0); d.Marked != nil || d.Echoed == nil {
		t.Errorf("the receiving kernel does not count marks: %v, %v", d.Marked, d.Echoed)
	}
	if d.Limit != tcpstate.LimitReceiver || *d.Timeouts != 3 || len(d.Flows) != 3 || !d.Flows[0].ECN || len(d.Flows[0].SenderRows[0]) != len(d.Flows[0].Columns) {
		t.Errorf("%s, %v, %+v", d.Limit, *d.Timeouts, d.Flows[0])
	}
	var words []string
	for _, line := range d.summary() {
		words = append(words, line.Quantity+": "+line.Text())
	}
	if got, want := strings.Join(words, "; "), "TCP throughput: 24 Mb/s; fairness: 1.00 (Jain, 3 flows); RTT under load: 160 ms (140 ms to 180 ms); min RTT: 99 ms; retransmitted: 2.50 %; limited by: receive window, 60 % of the time; models: mathis 1.682 Mb/s"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// What an end did whose record did not arrive is absent in documents, tables and drawings: it is not 0.
func TestValuesOfAnUnknownEndAreAbsent(t *testing.T) {
	const ofSender, ofReceiver = "congestion_control ecn mss_bytes retransmitted_bytes retransmitted_segments send_buffer sender_ended sent_bytes", "payload_bytes receive_buffer receiver_ended"
	for unknown, c := range map[string]struct {
		absent, present string
		columns         []int
	}{"sender": {ofSender, ofReceiver, []int{4, 5, 6, 7, 8, 10}}, "receiver": {ofReceiver, ofSender, []int{2, 3, 9}}} {
		for _, flows := range []int{1, 2} {
			r := steady(flows, 1_000_000)
			r.Cut = "the session was lost"
			if unknown == "sender" {
				r.Sender = make([]tcptraffic.FlowEnd, flows)
			} else {
				r.Receiver = make([]tcptraffic.FlowEnd, flows)
			}
			d := evaluated(r, time.Second)
			whole := &Result{Directions: []*Direction{d}}
			text, err := json.Marshal(whole)
			var document struct {
				Directions []struct {
					Payload  *int64           `json:"payload_bytes"`
					Seconds  *float64         `json:"duration_seconds"`
					Fairness map[string]any   `json:"fairness"`
					Flows    []map[string]any `json:"flows"`
				} `json:"directions"`
			}
			if err = errors.Join(err, json.Unmarshal(text, &document)); err != nil {
				t.Fatal(err)
			}
			one := document.Directions[0]
			for _, f := range one.Flows {
				for key := range strings.FieldsSeq(c.absent) {
					if v, ok := f[key]; ok {
						t.Errorf("%s unknown: %s is %v", unknown, key, v)
					}
				}
				for key := range strings.FieldsSeq(c.present) {
					if _, ok := f[key]; !ok {
						t.Errorf("%s unknown: no %s", unknown, key)
					}
				}
			}
			if known := unknown == "sender"; (one.Payload != nil) != known || (one.Seconds != nil) != known || one.Fairness["congestion_controls"] != nil {
				t.Errorf("%s unknown: %v bytes in %v s, fairness %v", unknown, one.Payload, one.Seconds, one.Fairness)
			}
			for _, row := range whole.Tables()[0].Rows {
				for i, cell := range row {
					if want := slices.Contains(c.columns, i); (cell == "-") != want {
						t.Errorf("%s unknown: column %d of %q", unknown, i, row)
					}
				}
			}
			for _, one := range whole.Drawings() {
				for _, s := range one.Series {
					if unknown == "sender" && strings.Contains(s.Name, "retransmitted") || strings.Contains(s.Name, "()") {
						t.Errorf("%s unknown: %q has the series %q", unknown, one.Title, s.Name)
					}
				}
			}
			d.note(&loadtest.Run{})
		}
	}
}

// The omitted time changes the mean, and a transfer shorter than twice it has none.
func TestOmittedTimeIsLeftOutOfTheMean(t *testing.T) {
	near(t, "nothing omitted", evaluated(steady(1, 1e6), 0).Throughput, 0.9e6, 0.001)
	near(t, "half a second", evaluated(steady(1, 1e6), 500*ms).Throughput, 4.25e6/4.5, 0.001)
	short := steady(1, 1e6)
	short.Plan.Bytes, short.Receiver[0].Last, short.Receiver[0].Payload = 1000, 1080*ms, 500_000
	near(t, "short", evaluated(short, time.Second).Throughput, 0.5e6, 0.001)
}

// A flow that stalls at the end counts with the whole time, and a transfer that was cut with the time it had.
func TestTimeOfTheMeanIsThatOfSending(t *testing.T) {
	stalled := steady(1, 1e6)
	r := &stalled.Receiver[0]
	r.Last, r.Payload = 3080*ms, 2_500_000
	near(t, "stalled", evaluated(stalled, time.Second).Throughput, 0.5e6, 0.01)
	stalled.Cut = "flow 1: sender: idle, receiver: idle"
	d := evaluated(stalled, time.Second)
	near(t, "cut", d.Throughput, 1e6, 0.01)
	if d.Partial != stalled.Cut {
		t.Errorf("partial %q", d.Partial)
	}
	r.First, r.Last, r.Payload = 80*ms, 107*ms, 14_480 // the first burst, at a link of 0.5 MB/s
	if d := evaluated(stalled, time.Second); d.Throughput != nil || *d.Payload != 14_480 {
		t.Errorf("%d bytes in 27 ms: %v bytes a second, want none", *d.Payload, *d.Throughput)
	}
}

func TestUnknownValuesAreAbsent(t *testing.T) {
	nothing := steady(1, 1e6)
	nothing.Cut = "flow 1: sender: reset, receiver: idle"
	nothing.Sender[0], nothing.Receiver[0], nothing.Connect = tcptraffic.FlowEnd{Ended: tcptraffic.EndedReset}, tcptraffic.FlowEnd{Ended: tcptraffic.EndedIdle}, nil
	if d := evaluated(nothing, time.Second); d.Throughput != nil || d.RTT != nil || d.RTTMin != nil || d.Retransmitted != nil || d.Timeouts != nil || d.Marked != nil || d.Limited != nil || d.Connect != nil || len(d.summary()) != 0 {
		t.Errorf("%+v", d)
	}
}

// How a transfer ended decides whether its run completes.
func TestEarlyEndsAreErrorsWithTheirReason(t *testing.T) {
	for _, c := range []struct {
		sender, receiver tcptraffic.Ended
		reason           string
	}{
		{tcptraffic.EndedLimit, tcptraffic.EndedClosed, ""},
		{tcptraffic.EndedIdle, tcptraffic.EndedIdle, runreason.Timeout},
		{tcptraffic.EndedReset, tcptraffic.EndedIdle, runreason.Timeout},
		{tcptraffic.EndedReset, tcptraffic.EndedFailed, runreason.Socket},
		{tcptraffic.EndedLimit, tcptraffic.EndedReset, runreason.Socket},
	} {
		r := steady(1, 1e6)
		r.Cut, r.Sender[0].Ended, r.Receiver[0].Ended = "x", c.sender, c.receiver
		err := Failed(r)
		f, _ := errors.AsType[*loadtest.Failure](err)
		if (err == nil) != (c.reason == "") || err != nil && f.Reason != c.reason {
			t.Errorf("%s, %s: %v", c.sender, c.receiver, err)
		}
	}
	if err := Failed(steady(1, 1e6)); err != nil {
		t.Error(err)
	}
	nothing := steady(1, 1e6)
	nothing.Cut, nothing.Sender[0].Ended, nothing.Receiver[0].Ended, nothing.Receiver[0].Payload = "x", tcptraffic.EndedTime, tcptraffic.EndedIdle, 0
	if f, ok := errors.AsType[*loadtest.Failure](Failed(nothing)); !ok || f.Reason != runreason.TooLarge {
		t.Errorf("nothing arrived: %v", f)
	}
}

// One flow has 20 kB outstanding and then 60 kB, the other 20 kB; the RTT is 160 ms on average.
func TestModelsHaveTheMeasuredConditions(t *testing.T) {
	r := steady(2, 1e6)
	for i := range r.Sender {
		f := &r.Sender[i]
		f.Final.RTO, f.Final.Negotiated = 400*ms, tcpsocket.Timestamps
		for j := range f.Samples {
			switch s := &f.Samples[j]; {
			case s.At < time.Second: // omitted
				s.Outstanding = 1 << 30
			case s.At >= 3*time.Second && i == 1:
				s.Outstanding = 60_000
			default:
				s.Outstanding = 20_000
			}
		}
	}
	o := DefaultOptions()
	o.LinkRate.Forward = 1500 * 2000 // 2000 packets a second
	d := Evaluate(r, &o, false)
	c := d.Models.Conditions
	near(t, "window", &c.Window, 40_000, 0)
	near(t, "mean window", &c.MeanWindow, 30_000, 0.03)
	near(t, "loss", &c.Loss, 0.025, 0)
	near(t, "RTT", &c.RTT, 0.160, 0.01)
	if c.MSS != 1448 || c.RTO != 0.4 || len(d.Models.Throughput) != 4 {
		t.Errorf("%+v", d.Models)
	}
	near(t, "model window", new(d.Models.Throughput["window"]), 2*30_000/0.160, 0.03)
	near(t, "model sawtooth", new(d.Models.Throughput["sawtooth"]), 2*30_000/0.160, 0.01)
	near(t, "model mathis", new(d.Models.Throughput["mathis"]), 2*1448/0.160*math.Sqrt(1.5/0.025), 0.01)
	near(t, "efficiency", d.RFC6349.Efficiency, 0.975, 1e-9)
	near(t, "buffer delay", d.RFC6349.BufferDelay, 61.0/99, 0.02)
	near(t, "ideal", d.RFC6349.Ideal, 2000*1448, 1e-9)
	near(t, "transfer time", d.RFC6349.TransferTime, 1.448, 0.001)
	near(t, "rate of the link", d.LinkRate, 3e6, 0)
	near(t, "of the link", d.LinkUsed, 1/1.448, 0.001)
	o.LinkRate.Forward, o.LinkRate.Reverse = 0, 1e6
	if d := Evaluate(r, &o, false); d.RFC6349.Ideal != nil || d.RFC6349.TransferTime != nil || d.LinkRate != nil || d.LinkUsed != nil {
		t.Errorf("without a rate of this direction: %+v", d.RFC6349)
	}
	r.Sender[1].Final = tcpsocket.Info{}
	if d := Evaluate(r, &o, false); d.Models != nil || d.RFC6349.Efficiency == nil {
		t.Errorf("state of a flow unknown: %+v", d.Models)
	}
}

// TestMetricHasTheQuantilesThatAreSet compares the text of the metric with rttRanks.
func TestMetricHasTheQuantilesThatAreSet(t *testing.T) {
	ranks := rttRanks()
	if want := "Quantile (" + strings.Join(ranks[:], ", ") + ")"; !strings.Contains(metric.TCPRTT.Help, want) {
		t.Errorf("%q has no %q", metric.TCPRTT.Help, want)
	}
}
