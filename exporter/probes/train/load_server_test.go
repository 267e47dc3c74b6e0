package train

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/probe"
)

func TestRunWithARealRemoteEndIsPublished(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	own := DefaultOptions()
	own.PayloadBytes, own.Trains, own.TrainInterval, own.Repeats = []int{1472, 9000 - 28}, 4, 20*time.Millisecond, 2
	own.MaxMTU = 8000
	sink := &metrictest.Keeping{}
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: sink, Clock: static.New(time.Millisecond, metric.Discard{})}
	k, err := NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	target := probe.Target{Path: "a-to-b", Probe: "train", Peer: "b"}
	outcome, err := loadtesttest.RunKind(t.Context(), env, target, shared, k, nil)
	if err != nil && !runreason.Find(outcome.Reason).Counted { // see below
		t.Fatal(err)
	}
	// Trains over loopback depend on the scheduler: they are counted, clean or not.
	for _, d := range outcome.Body.(*Result).Directions {
		if got, ok := sink.Value(metric.PathMTU, "a-to-b", "train", d.DirectionName); !ok || got != 8000 {
			t.Errorf("%s: published path MTU %v, want the largest size probed, 8000", d.DirectionName, got)
		}
		for size, fragmented := range map[string]float64{"1500": 0, "9000": 1} {
			trains := 0.0
			for _, r := range capacity.Results() {
				n, ok := sink.Value(metric.Trains, "a-to-b", "train", d.DirectionName, size, r.String())
				if !ok {
					t.Errorf("%s, %s B: no counter of trains that are %v", d.DirectionName, size, r)
				}
				trains += n
			}
			if trains < 3 {
				t.Errorf("%s, %s B: %v trains counted", d.DirectionName, size, trains)
			}
			if got, ok := sink.Value(metric.TrainFragmented, "a-to-b", "train", d.DirectionName, size); !ok || got != fragmented {
				t.Errorf("%s, %s B: fragmented is %v, %v, want %v", d.DirectionName, size, got, ok, fragmented)
			}
		}
		for _, z := range d.Sizes {
			quantiles := 0
			for labels := range sink.All(metric.Capacity) {
				if strings.HasPrefix(labels, "a-to-b,train,"+d.DirectionName+","+strconv.Itoa(z.PacketBytes)+",0.") {
					quantiles++
				}
			}
			if known := z.Median != nil; known != (quantiles == 3) {
				t.Errorf("%s, %d B: %d quantiles published, refusal %q", d.DirectionName, z.PacketBytes, quantiles, z.Refusal)
			}
			if observed, _ := sink.Observed(metric.TrainCapacity, "a-to-b", "train", d.DirectionName, strconv.Itoa(z.PacketBytes)); z.Median != nil && observed != len(z.Capacities) {
				t.Errorf("%s, %d B: %d capacities in the histogram, want %d", d.DirectionName, z.PacketBytes, observed, len(z.Capacities))
			}
		}
	}
}

// A token's rate allows 262,144 bytes at once, and the long trains of the defaults have 294,400.
func TestLongTrainsFitTheTokensRate(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, "rate=20Mbit")
	own := DefaultOptions()
	own.PayloadBytes, own.Trains, own.TrainInterval, own.PathMTU = []int{1472}, 4, 20*time.Millisecond, false
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})}
	k, err := NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := loadtesttest.RunKind(t.Context(), env, probe.Target{Path: "a-to-b", Probe: "train", Peer: "b"}, shared, k, nil)
	if err != nil && !runreason.Find(outcome.Reason).Counted { // loopback may have no clean train
		t.Fatal(err)
	}
	for _, d := range outcome.Body.(*Result).Directions {
		if len(d.Sizes) != 1 {
			t.Errorf("%s: %d sizes measured, want 1", d.DirectionName, len(d.Sizes))
		}
	}
}
