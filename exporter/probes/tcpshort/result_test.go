package tcpshort

import (
	"math"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
)

const ms = time.Millisecond

// transfer is one of 10 kB that took some time, of which a tenth was sent twice.
func transfer(took time.Duration) *tcptraffic.Result {
	t := &tcptraffic.Result{Connect: []time.Duration{20 * ms}, Completion: []time.Duration{took}, Sender: make([]tcptraffic.FlowEnd, 1), Receiver: make([]tcptraffic.FlowEnd, 1)}
	t.Plan.Bytes, t.Receiver[0].Payload, t.Sender[0].CongestionControl = 10_000, 10_000, "cubic"
	t.Sender[0].Ended, t.Receiver[0].Ended = tcptraffic.EndedBytes, tcptraffic.EndedClosed
	t.Sender[0].Final.Sent, t.Sender[0].Final.Retransmitted = 11_000, 1000
	return t
}

func TestUnfinishedFlowsAreLongerThanAllOthers(t *testing.T) {
	k := &Kind{opts: DefaultOptions()}
	k.opts.FlowTimeout = time.Second
	var flows []Flow
	for i := range 18 {
		flows = append(flows, k.evaluate(transfer(time.Duration(100-i)*ms)))
	}
	cut, short := transfer(0), transfer(50*ms)
	cut.Cut, short.Receiver[0].Payload = "flow 1: sender: reset, receiver: reset", 9999
	for _, one := range []struct {
		*tcptraffic.Result
		why string
	}{{cut, "reset"}, {short, "9999 of 10000 bytes arrived"}, {transfer(1001 * ms), "it took 1.001s"}} {
		f := k.evaluate(one.Result)
		if f.Completion != nil || !strings.Contains(f.Unfinished, one.why) {
			t.Errorf("%+v, want unfinished: %s", f, one.why)
		}
		flows = append(flows, f)
	}
	z := k.summarize(group{sample.Reverse, 10_000}, flows)
	if z.Unfinished != 3 || z.Completion.Tail != nil || z.CongestionControl != "cubic" || *z.Connect != 0.02 || math.Abs(*z.Retransmitted-1.0/11) > 1e-9 {
		t.Fatalf("%+v", z)
	}
	// Of 21 the median is the 11th: 83 ms to 100 ms ended.
	if got := z.Completion.Median; got == nil || got.Value != 0.093 || got.Lower >= 0.093 || got.Upper == nil || *got.Upper <= 0.093 || *z.Completion.Least != 0.083 {
		t.Errorf("median %+v, least %v", z.Completion.Median, z.Completion.Least)
	}
	r := &loadtest.Run{}
	(&Result{Sizes: []Size{z}}).conclude(r)
	if len(r.Summary) != 1 || r.Summary[0].Quantity != "completion of 10 kB" || r.Summary[0].Direction != "reverse" || r.Summary[0].Text() != "3 of 21 unfinished, median 93 ms" {
		t.Errorf("%+v", r.Summary)
	}
}

// A flow whose sender's record did not arrive has no bytes, and does not change the share of the others.
func TestFlowOfAnUnknownSenderHasNoBytes(t *testing.T) {
	k := &Kind{opts: DefaultOptions()}
	lost := transfer(0)
	lost.Sender[0], lost.Cut = tcptraffic.FlowEnd{}, "the session ended"
	f := k.evaluate(lost)
	if f.Sent != nil || f.Retransmitted != nil {
		t.Errorf("%+v", f)
	}
	if z := k.summarize(group{sample.Reverse, 10_000}, []Flow{f}); z.Retransmitted != nil {
		t.Errorf("%+v", z)
	}
	if z := k.summarize(group{sample.Reverse, 10_000}, []Flow{f, k.evaluate(transfer(50 * ms))}); math.Abs(*z.Retransmitted-1.0/11) > 1e-9 {
		t.Errorf("%v", *z.Retransmitted)
	}
}

// Of flows that were not connected, the handshake is longer than all others.
func TestUnconnectedFlowsCountInTheHandshake(t *testing.T) {
	k := &Kind{opts: DefaultOptions()}
	for unconnected, want := range []bool{true, true, false, false} {
		flows := []Flow{k.evaluate(transfer(90 * ms)), k.evaluate(transfer(90 * ms))}
		for range unconnected {
			cut := transfer(0)
			cut.Cut, cut.Connect[0] = "flow 1: no connection", 0
			flows = append(flows, k.evaluate(cut))
		}
		if z := k.summarize(group{sample.Reverse, 10_000}, flows); (z.Connect != nil) != want {
			t.Errorf("2 connected, %d not: %v", unconnected, z.Connect)
		}
	}
}

func TestOnlyFlowsNearTheTokensRateAreLimitedByIt(t *testing.T) {
	k := &Kind{opts: DefaultOptions()}
	for _, c := range []struct {
		bytes int64
		took  time.Duration
		rate  float64
		want  bool
	}{
		{100_000, 100 * ms, 0, false},         // no limit
		{100_000, 100 * ms, 2_500_000, false}, // the link has 1 MB/s
		{100_000, 50 * ms, 2_500_000, true},
		{100_000_000, 0, 2_500_000, true}, // unfinished after 30 s
		{1_000_000, 0, 2_500_000, false},
	} {
		r := &loadtest.Run{}
		loadsession.NoteTokenRate(r, loadcontrol.Limits{BytesPerSecond: c.rate}, k.meanRate(Flow{took: c.took}, c.bytes))
		if got := len(r.Notes) == 1; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
