package series

import (
	"fmt"
	"runtime"
	"testing"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/promsink"
)

// open opens the series of a path in a profile, about as a light probe does.
func open(sink *promsink.Sink, profile metric.Profile, path string) {
	for _, d := range familiesOf(metric.TitleProbes, metric.TitlePackets, metric.TitleDelay, metric.TitleVoice, metric.TitleClock) {
		own := d.In(profile)
		if own == nil || len(d.Labels) < 2 || d.Labels[0] != metric.Path || d == metric.PathInfo {
			continue
		}
		directions, rest := []string{""}, len(d.Labels)-2
		if rest > 0 && d.Labels[2] == metric.Direction {
			directions, rest = []string{"forward", "reverse"}, rest-1
		}
		for _, direction := range directions {
			labels := []string{path, "stamp"}
			if direction != "" {
				labels = append(labels, direction)
			}
			for range rest {
				labels = append(labels, "0.5")
			}
			s := sink.Series(own, labels...)
			switch d.Kind {
			case metric.Counter:
				s.Add(1)
			case metric.Gauge:
				s.Set(0.25)
			case metric.Histogram:
				s.Observe(0.25)
			}
		}
	}
}

// familiesOf are the families of a group.
func familiesOf(titles ...string) (all []*metric.Desc) {
	for _, g := range families.All() {
		for _, title := range titles {
			if g.Title == title {
				all = append(all, g.Descs...)
			}
		}
	}
	return all
}

// BenchmarkSeries makes lines of the series of many paths; B/converter is the memory that the conversion keeps.
func BenchmarkSeries(b *testing.B) {
	for _, c := range []struct {
		paths   int
		profile metric.Profile
	}{{1000, metric.Full}, {1000, metric.Slim}, {10_000, metric.Slim}, {10_000, metric.Full}} {
		b.Run(fmt.Sprintf("paths=%d/%s", c.paths, c.profile), func(b *testing.B) {
			sink := promsink.New(promsink.Options{})
			for i := range c.paths {
				open(sink, c.profile, fmt.Sprintf("site-%05d-to-site-%05d", i, i+1))
			}
			before := heap()
			convert, points, bytes := Of(families.All(), sink), 0, 0
			var e point.Encoder
			var line []byte
			emit := func(p *point.Point) {
				points++
				line, _ = e.Append(line[:0], p)
				bytes += len(line)
			}
			if err := convert(1, emit); err != nil {
				b.Fatal(err)
			}
			kept := heap() - before
			points, bytes = 0, 0
			b.ReportAllocs()
			for b.Loop() {
				if err := convert(instant.Time(2), emit); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(kept), "B/converter")
			b.ReportMetric(float64(points)/float64(b.N), "points/op")
			b.ReportMetric(float64(bytes)/float64(b.N), "lineB/op")
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
