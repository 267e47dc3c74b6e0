package loadtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probe/report"
)

func TestGaugesThatARunDoesNotSetAreRemoved(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, nil)
		step := 0
		b.kind.publish = func(v *loadtest.Values, _ int) {
			step++
			v.Set(metric.SweepLoss, float64(step), "forward", fmt.Sprint(step))
			v.Set(metric.UDPThroughput, 1, "forward")
			if step == 1 {
				v.Observe(metric.LoadedDelay, 1, "forward")
			}
		}
		b.start()
		time.Sleep(time.Hour + time.Minute) // simulated time (synctest)
		if diff := cmp.Diff(map[string]float64{"office,saturation,forward,2": 2}, b.sink.All(metric.SweepLoss)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n, _ := b.sink.Observed(metric.LoadedDelay, "office", "saturation", "forward"); n != 1 {
			t.Errorf("%d observations, want 1: histograms stay", n)
		}
		b.end()
	})
}

// Each of three buckets has one exemplar, for 300 delays.
func TestFirstObservationOfABucketHasTheRunsID(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.kind.publish = func(v *loadtest.Values, _ int) {
			for range 100 {
				v.ObserveAll(metric.LoadedDelay, []float64{0.001, 0.3, 1000}, "forward")
			}
			v.Observe(metric.TrainCapacity, 312_500, "forward", "1500")
		}
		b.start()
		time.Sleep(time.Minute) // simulated time (synctest)
		id := b.prober.LastRun()
		first := map[string][]float64{"run_id=" + id: {0.001, 0.3, 1000}}
		if diff := cmp.Diff(first, b.sink.Exemplars(metric.LoadedDelay, "office", "saturation", "forward")); diff != "" {
			t.Errorf("delays (-want +got):\n%s", diff)
		}
		if n, _ := b.sink.Observed(metric.LoadedDelay, "office", "saturation", "forward"); n != 300 {
			t.Errorf("%d observations, want 300", n)
		}
		if diff := cmp.Diff(map[string][]float64{"run_id=" + id: {312_500}}, b.sink.Exemplars(metric.TrainCapacity, "office", "saturation", "forward", "1500")); diff != "" {
			t.Errorf("capacities (-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour) // simulated time (synctest)
		second := b.prober.LastRun()
		if all := b.sink.Exemplars(metric.LoadedDelay, "office", "saturation", "forward"); second == id || len(all["run_id="+second]) != 3 || len(all) != 2 {
			t.Errorf("after the runs %s and %s: %v", id, second, all)
		}
		b.end()
	})
}

func TestExemplarOfARunIsInTheScrape(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	id := report.NewID(time.Now(), nil)
	loadtest.NewValues(metric.NewScope(sink, "office", "saturation")).Replace(id, func(v *loadtest.Values) {
		v.ObserveAll(metric.LoadedDelay, []float64{0.3, 0.3}, "forward")
	})
	var text strings.Builder
	if err := sink.Expose(&text, expfmt.NewFormat(expfmt.TypeOpenMetrics)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), ` # {run_id="`+id+`"} 0.3 `); n != 1 {
		t.Errorf("%d exemplars, want 1:\n%s", n, text.String())
	}
}

func TestDamageIsCountedForEveryRun(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, func(b *bench) {
			b.directions = sample.Directions()
			b.link.Each = func(d sample.Direction, c *udptraffic.CarrierResult) error {
				if d == sample.Forward {
					c.Received.Packets[3].Damage, c.Received.ChecksumErrors = 2, 7
				}
				return nil
			}
			b.kind.during = func(context.Context, int64) error { return errors.New("as the test wants") }
		})
		b.start()
		time.Sleep(time.Hour + time.Minute) // simulated time (synctest)
		damaged, _ := b.sink.Value(metric.RunPacketsCorrupted, "office", "saturation", "forward", "overwritten")
		checksum, _ := b.sink.Value(metric.KernelChecksumErrors, "office", "saturation", "forward")
		if damaged != 2 || checksum != 14 {
			t.Errorf("%v damaged, %v checksum errors", damaged, checksum)
		}
		damaged, _ = b.sink.Value(metric.RunPacketsCorrupted, "office", "saturation", "reverse", "overwritten")
		if checksum, known := b.sink.Value(metric.KernelChecksumErrors, "office", "saturation", "reverse"); damaged != 0 || checksum != 0 || !known {
			t.Errorf("reverse: %v damaged, %v checksum errors (%v); want none", damaged, checksum, known)
		}
		b.expectRuns(map[string]float64{"incomplete,internal": 2})
		b.end()
	})
}

func TestRunsThatBeganHaveReports(t *testing.T) {
	store := report.Open(report.Options{Dir: t.TempDir()})
	in(t, func(t *testing.T) {
		b := newBench(t, func(b *bench) {
			b.env.Reports = store
			b.refuse = func(n int64) error {
				if n == 2 {
					return errors.New("no")
				}
				return nil
			}
		})
		b.start()
		time.Sleep(2*time.Hour + time.Minute) // simulated time (synctest)
		b.end()
		var results []string
		for _, h := range store.List() {
			results = append(results, h.Result+" "+h.Path+" "+h.Kind+" "+h.Summary[0].Text())
		}
		if diff := cmp.Diff([]string{"completed office saturation all", "completed office saturation all"}, results); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
