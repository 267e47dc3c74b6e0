package promsink

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oneway.example/exporter/metric"
)

func BenchmarkObserve(b *testing.B) {
	s, _ := newSink(b, Options{})
	h := s.Series(metric.Delay, "path", "probe", "forward")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Observe(0.03 + float64(i%64)*1e-5)
	}
}

// BenchmarkObserveClientGolang is what Observe is measured against.
func BenchmarkObserveClientGolang(b *testing.B) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "h", Buckets: metric.Delay.Buckets, NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: maxSpan,
	})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Observe(0.03 + float64(i%64)*1e-5)
	}
}

func BenchmarkUpdate(b *testing.B) {
	s, _ := newSink(b, Options{})
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

// session opens the series of one path: 40, of which 9 are histograms.
func session(s metric.Sink, path string) (all []metric.Series) {
	open := func(d *metric.Desc, values ...string) {
		one := s.Series(d, append([]string{path, "stamp"}, values...)...)
		if d.Kind == metric.Gauge {
			one.Set(0.0123)
		}
		all = append(all, one)
	}
	for _, direction := range []string{"forward", "reverse"} {
		for _, d := range []*metric.Desc{
			metric.PacketsSent, metric.PacketsReceived, metric.PacketsLost, metric.PacketsInFlight,
			metric.PacketsDuplicated, metric.PacketsReordered, metric.PacketsLate, metric.PacketsCorrupted,
			metric.DelayMin, metric.DelayMax, metric.Jitter, metric.DelayErrorBound, metric.LossRatio,
			metric.Delay, metric.DelayVariation, metric.IPDV,
		} {
			open(d, direction)
		}
	}
	for _, d := range []*metric.Desc{
		metric.ProbeUp, metric.ProbeLastSuccess, metric.ProbeInterval, metric.RoundTripLost, metric.RoundTripReceived,
		metric.RoundTripTime, metric.Residence, metric.ProbeLateness,
	} {
		open(d)
	}
	return all
}

// BenchmarkScrape scrapes 10,000 sessions over HTTP's handler while one writer goes on; it
// reports the octets of one scrape, the memory of one session, and the longest
// time for which the writer had to wait for an Update.
func BenchmarkScrape(b *testing.B) {
	for _, sessions := range []int{100, 1000, 10_000} {
		for _, c := range []struct {
			name    string
			options Options
			accept  string
		}{
			{"text", Options{}, "text/plain"},
			{"protobuf", Options{}, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"},
			{"protobuf-native-only", Options{NoClassic: true}, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"},
		} {
			b.Run(fmt.Sprintf("sessions=%d/%s", sessions, c.name), func(b *testing.B) {
				benchmarkScrape(b, sessions, c.options, c.accept)
			})
		}
	}
}

func benchmarkScrape(b *testing.B, sessions int, o Options, accept string) {
	reg := prometheus.NewRegistry()
	s, err := NewWith(reg, o)
	if err != nil {
		b.Fatal(err)
	}
	before := heapBytes()
	all := make([][]metric.Series, sessions)
	for i := range all {
		all[i] = session(s, fmt.Sprintf("site-%05d-to-site-%05d", i, i+1))
		for _, one := range all[i] {
			if h, ok := one.(*handle); ok && h.hist != nil {
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
	handler := promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", "identity")
	b.ReportAllocs()
	var size int64
	for b.Loop() {
		w := &counting{header: http.Header{}}
		handler.ServeHTTP(w, r)
		size = w.n
	}
	close(stop)
	running.Wait()
	b.ReportMetric(perSession, "B/session")
	b.ReportMetric(float64(size), "B/scrape")
	b.ReportMetric(float64(longest.Load())/1e3, "us-longest-update")
}

// write updates one session after the other, 10,000 a second.
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

// counting is a ResponseWriter that only counts.
type counting struct {
	header http.Header
	n      int64
}

func (c *counting) Header() http.Header { return c.header }
func (c *counting) WriteHeader(int)     {}
func (c *counting) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

var _ io.Writer = (*counting)(nil)
