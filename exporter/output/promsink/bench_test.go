package promsink

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/core/metric"
)

func BenchmarkObserve(b *testing.B) {
	s := newSink(Options{})
	h := s.Series(metric.Delay, "path", "probe", "forward")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Observe(0.03 + float64(i%64)*1e-5)
	}
}

// BenchmarkObserveClientGolang is the reference for the cost of Observe.
func BenchmarkObserveClientGolang(b *testing.B) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "h", Buckets: metric.Delay.Buckets, NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: usualSpan,
	})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Observe(0.03 + float64(i%64)*1e-5)
	}
}

func BenchmarkUpdate(b *testing.B) {
	s := newSink(Options{})
	c, h := s.Series(metric.PacketsSent, "path", "probe", "forward"), s.Series(metric.Delay, "path", "probe", "forward")
	f := func() {
		c.Add(1)
		h.Observe(0.03)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Update(f)
	}
}

// session opens the series of one path, histograms included.
func session(s *Sink, profile metric.Profile, path string) (all []metric.Series) {
	open := func(d *metric.Desc, values ...string) {
		if d = d.In(profile); d == nil {
			all = append(all, metric.Discard{}.Series(nil))
			return
		}
		one := s.Series(d, append([]string{path, "stamp"}, values...)...)
		if d.Kind == metric.Gauge {
			one.Set(0.0123)
		}
		all = append(all, one)
	}
	for _, direction := range []string{"forward", "reverse"} {
		for _, d := range []*metric.Desc{
			metric.PacketsSent, metric.PacketsReceived, metric.PacketsLost, metric.PacketsOutstanding,
			metric.PacketsDuplicated, metric.PacketsReordered, metric.PacketsLate, metric.PacketsCorrupted,
			metric.DelayMin, metric.DelayMax, metric.Jitter, metric.DelayErrorBound, metric.LossRatio,
			metric.Delay, metric.DelayVariation, metric.IPDV,
		} {
			open(d, direction)
		}
		open(metric.DelayQuantile, direction, "0.5")
	}
	for _, d := range []*metric.Desc{
		metric.ProbeUp, metric.ProbeLastSuccess, metric.ProbeInterval, metric.RoundTripLost, metric.RoundTripReceived, metric.RoundTripTimeMin,
		metric.RoundTripTime, metric.Residence, metric.ProbeLateness,
	} {
		open(d)
	}
	return all
}

// BenchmarkOpen opens and closes 10,000 sessions, whose names are in no order.
func BenchmarkOpen(b *testing.B) {
	const sessions = 10_000
	for _, profile := range []metric.Profile{metric.Slim, metric.Full} {
		b.Run(profile.String(), func(b *testing.B) {
			s := New(Options{})
			all := make([][]metric.Series, sessions)
			for b.Loop() {
				for i := range all {
					all[i] = session(s, profile, fmt.Sprintf("site-%05d", i*7919%sessions))
				}
				for _, one := range all {
					s.Update(func() {
						for _, series := range one {
							series.Close()
						}
					})
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/sessions, "us/session")
		})
	}
}

// BenchmarkScrape scrapes up to 10,000 sessions during the updates of one writer; it reports the bytes of a scrape, the
// memory of a session, and the longest time that the writer waited for an Update.
func BenchmarkScrape(b *testing.B) {
	for _, sessions := range []int{100, 1000, 10_000} {
		for _, c := range []struct {
			profile metric.Profile
			name    string
			options Options
			format  expfmt.FormatType
		}{
			{metric.Full, "text", Options{}, expfmt.TypeTextPlain},
			{metric.Full, "protobuf", Options{}, expfmt.TypeProtoDelim},
			{metric.Full, "protobuf-native-only", Options{NoClassic: true}, expfmt.TypeProtoDelim},
			{metric.Slim, "text", Options{}, expfmt.TypeTextPlain},
			{metric.Slim, "protobuf", Options{}, expfmt.TypeProtoDelim},
		} {
			b.Run(fmt.Sprintf("sessions=%d/%s/%s", sessions, c.profile, c.name), func(b *testing.B) {
				benchmarkScrape(b, sessions, c.profile, c.options, expfmt.NewFormat(c.format))
			})
		}
	}
}

func benchmarkScrape(b *testing.B, sessions int, profile metric.Profile, o Options, format expfmt.Format) {
	s := New(o)
	before := heapBytes()
	all := make([][]metric.Series, sessions)
	for i := range all {
		all[i] = session(s, profile, fmt.Sprintf("site-%05d-to-site-%05d", i, i+1))
		for _, one := range all[i] {
			if h, ok := one.(*series); ok && h.hist != nil {
				for k := range 50 {
					h.Observe(0.02 + float64(k)*0.0005)
				}
			}
		}
	}
	perSession := float64(heapBytes()-before) / float64(sessions)
	var longest atomic.Int64
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { write(s, all, stop, &longest) })
	b.ReportAllocs()
	var size int64
	for b.Loop() {
		var w counting
		if err := s.Expose(&w, format); err != nil {
			b.Fatal(err)
		}
		size = int64(w)
	}
	close(stop)
	running.Wait()
	b.ReportMetric(perSession, "B/session")
	b.ReportMetric(float64(size), "B/scrape")
	b.ReportMetric(float64(longest.Load())/1e3, "us-longest-update")
}

// write updates the sessions in turn, 10,000 per second.
func write(s *Sink, all [][]metric.Series, stop chan struct{}, longest *atomic.Int64) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		for k := range 100 {
			one := all[(i*100+k)%len(all)]
			begin := time.Now()
			s.Update(func() {
				one[0].Add(1)
				one[13].Observe(0.03)
			})
			longest.Store(max(longest.Load(), int64(time.Since(begin))))
		}
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// counting is an io.Writer that counts bytes.
type counting int64

func (c *counting) Write(p []byte) (int, error) {
	*c += counting(len(p))
	return len(p), nil
}
