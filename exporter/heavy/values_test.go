package heavy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/report"
	"oneway.example/exporter/sample"
)

func TestGaugesThatARunDoesNotSetAreGone(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, nil)
		step := 0
		b.kind.publish = func(v *heavy.Values, _ int) {
			step++
			v.Set(metric.SweepLoss, float64(step), "forward", fmt.Sprint(step))
			v.Set(metric.UDPThroughput, 1, "forward")
			if step == 1 {
				v.Observe(metric.LoadedDelay, 1, "forward")
			}
		}
		b.start()
		time.Sleep(time.Hour + time.Minute)
		if diff := cmp.Diff(map[string]float64{"office,saturate,forward,2": 2}, b.sink.All(metric.SweepLoss)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n, _ := b.sink.Observed(metric.LoadedDelay, "office", "saturate", "forward"); n != 1 {
			t.Errorf("%d observations; what is summed up stays", n)
		}
		b.end()
	})
}

func TestDamageIsCountedOfEveryRun(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, func(b *bench) {
			b.link.Each = func(_ sample.Direction, c *heavy.Carried) error {
				c.Received.Packets[3].Damage, c.Received.ChecksumErrors = 2, 7
				return nil
			}
			b.kind.during = func(context.Context, int64) error { return errors.New("not what was wanted") }
		})
		b.start()
		time.Sleep(time.Hour + time.Minute)
		damaged, _ := b.sink.Value(metric.Damaged, "office", "saturate", "forward", "overwritten")
		checksum, _ := b.sink.Value(metric.KernelChecksumErrors, "office", "saturate", "forward")
		if damaged != 2 || checksum != 14 {
			t.Errorf("%v damaged, %v checksum errors", damaged, checksum)
		}
		b.expectRuns(map[string]float64{"incomplete,internal": 2})
		b.end()
	})
}

func TestReportsAreKeptOfRunsThatBegan(t *testing.T) {
	store, err := report.Open(report.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
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
		time.Sleep(2*time.Hour + time.Minute)
		b.end()
		var results []string
		for _, h := range store.List() {
			results = append(results, h.Result+" "+h.Path+" "+h.Kind+" "+h.Summary[0].Value)
		}
		if diff := cmp.Diff([]string{"completed office saturate all", "completed office saturate all"}, results); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
