package saturation_test

import (
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probes/saturation"
)

// halepovic's downlink: 1.5 Mb/s; the steps exceed it.
func sweepOf(o *saturation.Options) {
	o.Mode = saturation.ModeSweep
	o.Rate.Forward, o.Sweep.From.Forward, o.Sweep.Factor = 3e6/8, 500e3/8, 1.5
	o.Sweep.LossySteps = 0
}

func TestSweepFindsWhereLossBegins(t *testing.T) {
	link := &bottleneck{Rate: 1.5e6 / 8, Queue: 20_000, Delay: 60 * time.Millisecond}
	b := must(t, link, sweepOf, "forward")
	// 0.5, 0.75, 1.125, 1.6875, 2.53 and 3 Mb/s.
	if n := len(b.sink.All(metric.SweepLoss)); n != 6 || link.Transfers != 6 {
		t.Errorf("%d steps in %d transfers: %v", n, link.Transfers, b.sink.All(metric.SweepLoss))
	}
	b.expect(t, metric.SweepLoss, 0, 0, "forward", "140625")
	b.expect(t, metric.SweepThroughput, 140_625, 0.01, "forward", "140625")
	b.expect(t, metric.SweepLoss, 0.5, 0.03, "forward", "375000")
	b.expect(t, metric.SweepThroughput, 187_500, 0.01, "forward", "375000")
	b.expect(t, metric.SweepLossless, 140_625, 0.001, "forward")
	b.expect(t, metric.SweepMaximum, 187_500, 0.01, "forward")
	b.absent(t, metric.UDPThroughput, metric.UDPRate, metric.SearchMaximum, metric.QueueDelay, metric.SaturationState, metric.UDPThroughputElapsed)
	if !strings.Contains(b.words(), "lossless forward: up to 1.125 Mb/s") {
		t.Errorf("%s", b.words())
	}
}

func TestSweepEndsAfterEnoughLossySteps(t *testing.T) {
	link := &bottleneck{Rate: 600e3 / 8, Queue: 20_000}
	b := must(t, link, func(o *saturation.Options) {
		sweepOf(o)
		o.Sweep.LossySteps = 2
	}, "forward")
	if link.Transfers != 3 { // 0.5 passes, 0.75 and 1.125 do not
		t.Errorf("%d steps", link.Transfers)
	}
	b.expect(t, metric.SweepLossless, 62_500, 0.001, "forward")
}

func TestSweepWhoseLowestStepLosesHasNoLosslessRate(t *testing.T) {
	b := must(t, &bottleneck{Rate: 100e3 / 8, Queue: 3_000}, sweepOf, "forward")
	b.absent(t, metric.SweepLossless)
}

func TestSearchFindsTheHighestRateOfTheLink(t *testing.T) {
	for name, rate := range map[string]float64{"slow": 2e6 / 8, "fast": 80e6 / 8} {
		link := &bottleneck{Rate: rate, Queue: int(rate), Delay: 20 * time.Millisecond, Offset: -time.Minute}
		b := must(t, link, func(o *saturation.Options) {
			o.Mode, o.Rate.Reverse = saturation.ModeSearch, option.Rate(rate*1.7)
		}, "reverse")
		b.expect(t, metric.SearchMaximum, rate, 0.02, "reverse")
		b.absent(t, metric.UDPThroughput, metric.UDPRate, metric.SweepMaximum, metric.QueueDelay, metric.SaturationState, metric.SweepLoss)
		if !strings.Contains(b.words(), "highest rate reverse: ") {
			t.Errorf("%s: %s", name, b.words())
		}
	}
}

// The transfer lasts as long as the whole search: the load server applies both limits to its plan.
func TestSearchKeepsToTheToken(t *testing.T) {
	own := wibroOptions()
	own.Mode = saturation.ModeSearch
	kind, err := saturation.NewKind(loadsession.DefaultOptions(), own)
	if err != nil {
		t.Fatal(err)
	}
	limits := loadcontrol.Limits{BytesPerSecond: 1e5, Duration: 10 * time.Second}
	run := &loadtest.Run{Directions: sampleForward()}
	var plan stream.Plan
	c := &planRecorder{link: &bottleneck{Rate: 50_000, Queue: 20_000}, plan: &plan}
	if err := kind.Perform(t.Context(), udptraffic.NewSession(c, udptraffic.SessionOptions{Limits: limits}), run); err != nil {
		t.Fatal(err)
	}
	if rate, unpaced := plan.PeakRate(); unpaced || rate > limits.BytesPerSecond*1.0001 || plan.Duration() > limits.Duration {
		t.Errorf("%v of %.0f bytes/s, the token allows %+v", plan.Duration(), rate, limits)
	}
	if d := run.Body.(*saturation.Result).Directions[0]; d.Sustained == nil || len(run.Notes) == 0 || !strings.Contains(run.Notes[0], "the limit of the token") {
		t.Errorf("%+v, %q", d.Sustained, run.Notes)
	}
}
