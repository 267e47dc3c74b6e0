package tcptraffic_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
)

// BenchmarkStamps alternates transfers with and without stamps over loopback, and reports the median throughput of both.
func BenchmarkStamps(b *testing.B) {
	for _, d := range sample.Directions() {
		b.Run(d.String(), func(b *testing.B) {
			shared := loadtesttest.RemoteEnd(b.Context(), b, loadtesttest.End{})
			rates := map[bool][]float64{}
			_, err := onceWithin(b.Context(), shared, func(ctx context.Context, s *tcptraffic.Session) error {
				for i := 0; b.Loop(); i++ {
					for k := range 2 {
						p := plan(d, 2*time.Second)
						p.Most, p.Discard, p.Stamps = 1<<37, true, (i+k)%2 == 0
						res, err := s.Transfer(ctx, p)
						if err != nil {
							return err
						}
						r := &res.Receiver[0]
						rates[p.Stamps] = append(rates[p.Stamps], float64(r.Payload)/(r.Last-r.First).Seconds()/1e6)
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
			b.ReportMetric(median(rates[false]), "plain-MB/s")
			b.ReportMetric(median(rates[true]), "stamped-MB/s")
			b.ReportMetric(median(rates[true])/median(rates[false]), "stamped/plain")
		})
	}
}
