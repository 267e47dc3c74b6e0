package message

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/tests/precision"
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
	own.Duration, own.MessageRate, own.CongestionControl = time.Second, 200, "reno"
	out, res, err := run(t, own, sink, "rate=20Mbit")
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Parts) != 6 || len(out.Summary) != 6 || len(out.Notes) != 0 {
		t.Fatalf("%+v, %+v; notes %q", res, out.Summary, out.Notes)
	}
	for i, p := range res.Parts {
		by, d := transports()[i%3], sample.Directions()[i/3].String()
		if p.Transport != by || p.Direction != d || p.Partial != "" || *p.Sent != 200 {
			t.Errorf("%s, %s: %+v", d, by, p)
			continue
		}
		for what, got := range map[string]*float64{"offered": p.Offered, "throughput": p.Throughput} {
			if got == nil || *got <= 0 {
				t.Errorf("%s, %s: %s is %v", d, by, what, got)
			} else if math.Abs(*got/(200*512)-1) > 0.05 {
				precision.Missed(t, fmt.Errorf("%s, %s: %s is %v, want %d", d, by, what, *got, 200*512))
			}
		}
		if (p.Loss != nil) != (by == UDP) || (p.Retransmitted != nil) != (by != UDP) || (p.RTT != nil) != (by != UDP) || (p.Delay != nil) != (by == UDP) || (p.CongestionControl == "reno") != (by != UDP) {
			t.Errorf("%s, %s: %+v", d, by, p)
		}
		if n := *p.PerMessage; n <= 0 || n > 1.1 || by == UDP && n != 1 {
			t.Errorf("%s, %s: %v packets per message", d, by, n)
		}
		lost := RetransmittedDesc
		if by == UDP {
			lost = LossDesc
		}
		for _, family := range []*metric.Desc{ThroughputDesc, OfferedDesc, lost} {
			if v, ok := sink.Value(family, "a-to-b", "message", d, "512", string(by)); !ok || v < 0 {
				t.Errorf("%s, %s: %s is %v, %v", d, by, family.Name, v, ok)
			}
		}
	}
	if sum := out.ForwardBytes + out.ReverseBytes; sum < 6*200*512 || sum > 6*200*800 {
		t.Errorf("%d IP bytes", sum)
	}
	if _, err := json.Marshal(out); err != nil {
		t.Error(err)
	}
}

// A transport that the token does not allow is partial, and the others are measured.
func TestRefusedTransportLeavesTheOthers(t *testing.T) {
	sink := &metrictest.Keeping{}
	own := DefaultOptions()
	own.Duration, own.MessageRate, own.MessageBytes = time.Second, 1000, 1000
	out, res, err := run(t, own, sink, "rate=5Mbit")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range res.Parts {
		if (p.Partial != "") != (p.Transport == UDP) {
			t.Errorf("%+v", p)
		}
		if p.Transport == UDP {
			if v, ok := sink.Value(ThroughputDesc, "a-to-b", "message", p.Direction, "1000", "udp"); ok {
				t.Errorf("%s: throughput %v of a refused transport", p.Direction, v)
			}
		} else if *p.Throughput > 5e6/8*1.5 { // with what the bucket of the rate has at the beginning
			t.Errorf("%s, %s: %v bytes per second", p.Direction, p.Transport, *p.Throughput)
		}
	}
	notes := strings.Join(out.Notes, "\n")
	for _, want := range []string{"the token limits the rate", "forward, UDP: partial: ", "reverse, UDP: partial: "} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes without %q:\n%s", want, notes)
		}
	}
}

func TestNoTransportAllowedIsAnError(t *testing.T) {
	own := DefaultOptions()
	own.Duration = 2 * time.Second
	out, res, err := run(t, own, metric.Discard{}, "duration=1s")
	if err == nil || !strings.Contains(err.Error(), "1s") || out.Result == loadtest.Completed || len(res.Parts) != 6 {
		t.Errorf("%s, %v, %d parts", out.Result, err, len(res.Parts))
	}
}
