package sizesweep

import (
	"log/slog"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/probe"
)

// A token whose quota of the day is less than all cells need omits some cells; one without a rest fails the run
// with the remote end's reason.
func TestTokensDailyQuotaOmitsCellsAndNotTheRun(t *testing.T) {
	own := DefaultOptions()
	own.PacketBytes, own.PacketRates = []int{64, 1500}, []int{100, 1000}
	own.CellDuration, own.Repetitions = 100*time.Millisecond, 2
	once := func(perDay string) (*loadtest.Outcome, *Result, error) {
		shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, "per-day="+perDay)
		env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})}
		k, err := NewKind(shared, own)
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := loadtesttest.RunKind(t.Context(), env, probeTarget(), shared, k, nil)
		res, _ := outcome.Body.(*Result)
		return outcome, res, err
	}
	// 1280, 12 800, 30 000 and 300 000 bytes by cell, in each direction.
	_, res, err := once("200kB")
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Cells) != 6 || len(res.Omitted) != 2 {
		t.Fatalf("%d cells, omitted %+v; want the two of 1500 B x 1000/s omitted", len(res.Cells), res.Omitted)
	}
	for _, o := range res.Omitted {
		if o.PacketBytes*o.PacketRate != 1_500_000 || o.Why != "the token has 200 kB left today (per-day)" {
			t.Errorf("omitted %v: %s", o.Cell, o.Why)
		}
	}
	outcome, _, err := once("1kB")
	if err == nil || outcome.Result != loadtest.Refused || outcome.Reason != "day_limit" {
		t.Errorf("with a quota below one cell: %s, %s, %v", outcome.Result, outcome.Reason, err)
	}
}

func TestRunWithARealRemoteEndIsPublished(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, "rate=10Mbit")
	own := DefaultOptions()
	own.PacketBytes, own.PacketRates = []int{64, 1500}, []int{100, 1000}
	own.CellDuration, own.Repetitions = 300*time.Millisecond, 2
	sink := &metrictest.Keeping{}
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: sink, Clock: static.New(time.Millisecond, metric.Discard{})}
	k, err := NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := loadtesttest.RunKind(t.Context(), env, probeTarget(), shared, k, nil)
	if err != nil {
		t.Fatal(err)
	}
	res := outcome.Body.(*Result)
	if len(res.Cells) != 6 || len(res.Omitted) != 2 {
		t.Fatalf("%d cells and %d omitted of 8, want the two of 1500 B x 1000/s omitted", len(res.Cells), len(res.Omitted))
	}
	for _, m := range res.Cells {
		if *m.Median.Loss != 0 || len(m.Repetitions) != 2 {
			t.Errorf("%v: loss %v in %d repetitions over loopback", m.Cell, *m.Median.Loss, len(m.Repetitions))
		}
		if offered := float64(m.PacketBytes * m.PacketRate); *m.Median.Sent > 1.01*offered || *m.Median.Sent < offered/2 {
			t.Errorf("%v: sent %v bytes/s of %v", m.Cell, *m.Median.Sent, offered)
		}
	}
	for _, family := range []*metric.Desc{
		metric.SizeSweepSent, metric.SizeSweepReceived, metric.SizeSweepSpread, metric.SizeSweepIPDV, metric.SizeSweepLoss, metric.SizeSweepUnderrun,
	} {
		if got := sink.All(family); len(got) != 6 {
			t.Errorf("%s has the series %v, want one for each of 6 cells", family.Name, got)
		}
	}
	// Loopback's delays are mostly below the error of two timestamps, and are then absent.
	if delays, bounds := sink.All(metric.SizeSweepDelay), sink.All(metric.SizeSweepDelayBound); len(delays) != len(bounds) {
		t.Errorf("%d delays, %d bounds", len(delays), len(bounds))
	}
	if got, ok := sink.Value(metric.SizeSweepReceived, "a-to-b", "size_sweep", "reverse", "64", "1000"); !ok || got < 32_000 || got > 65_000 {
		t.Errorf("published are %v bytes/s of 64 B x 1000/s", got)
	}
}
