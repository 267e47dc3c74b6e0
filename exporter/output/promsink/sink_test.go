package promsink

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/core/metric"
)

var (
	testCounter   = &metric.Desc{Name: "test_packets_total", Kind: metric.Counter, Help: "Packets.", Labels: []string{"path", "direction"}}
	testLost      = &metric.Desc{Name: "test_lost_total", Kind: metric.Counter, Help: "Lost.", Labels: []string{"path", "direction"}}
	testGauge     = &metric.Desc{Name: "test_level", Kind: metric.Gauge, Help: "Level.", Labels: []string{"path"}}
	testHistogram = &metric.Desc{Name: "test_delay_seconds", Kind: metric.Histogram, Help: "Delay.", Labels: []string{"path"}, Buckets: []float64{0.001, 0.1}}
)

func newSink(o Options) *Sink {
	if o.Now == nil {
		o.Now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	}
	return New(o)
}

// gather merges all families in a registry of client_golang, which checks their consistency.
func gather(t testing.TB, s *Sink) []*dto.MetricFamily {
	t.Helper()
	families, err := prometheus.Gatherers{s, prometheus.NewPedanticRegistry()}.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func expose(t testing.TB, s *Sink, format expfmt.FormatType) string {
	t.Helper()
	var b strings.Builder
	if err := s.Expose(&b, expfmt.NewFormat(format)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func text(t testing.TB, s *Sink) string {
	t.Helper()
	return expose(t, s, expfmt.TypeTextPlain)
}

func TestExpositionIsGolden(t *testing.T) {
	s := newSink(Options{})
	s.Series(testCounter, "b", "reverse").Add(2)
	s.Series(testCounter, "a", "forward").Add(3)
	s.Series(testCounter, "a", "reverse")
	s.Series(testGauge, "a").Set(-1.5)
	s.Series(testGauge, "never set")
	h := s.Series(testHistogram, "a")
	for _, v := range []float64{0.001, 0.05, 7} {
		h.Observe(v)
	}
	want := `# HELP test_delay_seconds Delay.
# TYPE test_delay_seconds histogram
test_delay_seconds_bucket{path="a",le="0.001"} 1
test_delay_seconds_bucket{path="a",le="0.1"} 2
test_delay_seconds_bucket{path="a",le="+Inf"} 3
test_delay_seconds_sum{path="a"} 7.051
test_delay_seconds_count{path="a"} 3
# HELP test_level Level.
# TYPE test_level gauge
test_level{path="a"} -1.5
# HELP test_packets_total Packets.
# TYPE test_packets_total counter
test_packets_total{direction="forward",path="a"} 3
test_packets_total{direction="reverse",path="a"} 0
test_packets_total{direction="reverse",path="b"} 2
`
	if diff := cmp.Diff(want, text(t, s)); diff != "" {
		t.Errorf("exposition (-want +got):\n%s", diff)
	}
}

func TestClearedGaugeIsAbsentUntilItIsSet(t *testing.T) {
	s := newSink(Options{})
	g := s.Series(testGauge, "a")
	for _, step := range []struct {
		do   func()
		want int
	}{
		{func() {}, 0},
		{func() { g.Set(1) }, 1},
		{g.Clear, 0},
		{func() { g.Set(0) }, 1},
	} {
		step.do()
		if got := strings.Count(text(t, s), "test_level{"); got != step.want {
			t.Errorf("%d series, want %d", got, step.want)
		}
	}
}

func TestSeriesEndsWithItsLastOpener(t *testing.T) {
	s := newSink(Options{})
	first, second := s.Series(testCounter, "a", "forward"), s.Series(testCounter, "a", "forward")
	first.Add(1)
	second.Add(1)
	first.Close()
	first.Close() // a second Close of the same opener does nothing
	if got := text(t, s); !strings.Contains(got, `test_packets_total{direction="forward",path="a"} 2`) {
		t.Errorf("one opener is left but the series has ended:\n%s", got)
	}
	second.Close()
	if got := text(t, s); got != "" {
		t.Errorf("after all openers closed it there is\n%s", got)
	}
	if len(s.pairs) != 0 {
		t.Errorf("%d label pairs are kept for no series", len(s.pairs))
	}
	s.Series(testCounter, "a", "forward")
	if got := text(t, s); !strings.Contains(got, `path="a"} 0`) {
		t.Errorf("a reopened series does not start at 0:\n%s", got)
	}
}

func TestMisuseOfAKindPanics(t *testing.T) {
	s := newSink(Options{})
	for name, misuse := range map[string]func(){
		"add to gauge":      func() { s.Series(testGauge, "a").Add(1) },
		"negative add":      func() { s.Series(testCounter, "a", "b").Add(-1) },
		"total of a gauge":  func() { s.Series(testGauge, "a").SetTotal(1) },
		"set counter":       func() { s.Series(testCounter, "a", "b").Set(1) },
		"clear histogram":   func() { s.Series(testHistogram, "a").Clear() },
		"observe a counter": func() { s.Series(testCounter, "a", "b").Observe(1) },
		"too few labels":    func() { s.Series(testCounter, "a") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse()
		}()
	}
}

func TestInvalidLabelValuesDoNotBreakTheScrape(t *testing.T) {
	s := newSink(Options{})
	s.Series(testGauge, "a\x00\xff\"\n").Set(1)
	if got := text(t, s); !strings.Contains(got, "test_level{path=\"a\uFFFD\uFFFD\\\"\\n\"} 1") {
		t.Errorf("got %q", got)
	}
}

func TestCreatedTimestampIsTheTimeOfTheOpening(t *testing.T) {
	s := newSink(Options{Now: func() time.Time { return time.Unix(42, 0) }})
	s.Series(testCounter, "a", "forward")
	s.Series(testHistogram, "a")
	for _, f := range gather(t, s) {
		m := f.Metric[0]
		created := m.GetCounter().GetCreatedTimestamp()
		if m.Histogram != nil {
			created = m.Histogram.CreatedTimestamp
		}
		if created.GetSeconds() != 42 {
			t.Errorf("%s created at %v, want 42", f.GetName(), created)
		}
	}
}

// TestScrapeSeesAllOrNothingOfAnUpdate has writers that keep sent = received + lost over several series, one of which
// they open and close.
func TestScrapeSeesAllOrNothingOfAnUpdate(t *testing.T) {
	s := newSink(Options{})
	const writers, scrapes = 4, 100
	stop := make(chan struct{})
	var running sync.WaitGroup
	for w := range writers {
		path := fmt.Sprintf("p%d", w)
		sent, lost := s.Series(testCounter, path, "forward"), s.Series(testLost, path, "forward")
		delay, level := s.Series(testHistogram, path), s.Series(testGauge, path)
		running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				s.Update(func() {
					sent.SetTotal(float64(i + 1))
					if i%3 == 0 {
						lost.Add(1)
					} else {
						delay.Observe(float64(i%7) / 50)
					}
					level.Set(float64(i + 1))
				})
			}
		})
	}
	for range scrapes {
		checkSums(t, gather(t, s))
	}
	close(stop)
	running.Wait()
}

func checkSums(t *testing.T, families []*dto.MetricFamily) {
	t.Helper()
	sums := map[string][4]float64{} // sent, lost, delays, level
	for _, f := range families {
		for _, m := range f.Metric {
			path := m.Label[len(m.Label)-1].GetValue()
			v := sums[path]
			switch f.GetName() {
			case testCounter.Name:
				v[0] = m.Counter.GetValue()
			case testLost.Name:
				v[1] = m.Counter.GetValue()
			case testHistogram.Name:
				v[2] = float64(m.Histogram.GetSampleCount())
				if native := nativeCount(m.Histogram); native != m.Histogram.GetSampleCount() {
					t.Fatalf("native buckets hold %d of %d", native, m.Histogram.GetSampleCount())
				}
			case testGauge.Name:
				v[3] = m.Gauge.GetValue()
			}
			sums[path] = v
		}
	}
	for path, v := range sums {
		if v[0] != v[1]+v[2] || v[0] != v[3] {
			t.Fatalf("%s: sent %v, lost %v, received %v, level %v", path, v[0], v[1], v[2], v[3])
		}
	}
}

func nativeCount(h *dto.Histogram) uint64 {
	total := int64(h.GetZeroCount())
	for _, deltas := range [][]int64{h.PositiveDelta, h.NegativeDelta} {
		count := int64(0)
		for _, d := range deltas {
			count += d
			total += count
		}
	}
	return uint64(total)
}

func TestPathsRemovedDuringScrapesLeaveNothing(t *testing.T) {
	s := newSink(Options{})
	stop := make(chan struct{})
	var running sync.WaitGroup
	for w := range 3 {
		running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				path := fmt.Sprintf("p%d-%d", w, i%5)
				var h, c metric.Series
				s.Update(func() {
					h, c = s.Series(testHistogram, path), s.Series(testCounter, path, "forward")
					h.Observe(1)
					c.Add(1)
				})
				s.Update(func() { h.Close(); c.Close() })
			}
		})
	}
	for range 100 {
		counts := map[string]int{}
		for _, f := range gather(t, s) {
			counts[f.GetName()] = len(f.Metric)
		}
		if counts[testHistogram.Name] != counts[testCounter.Name] {
			t.Fatalf("half of an opening or closing was seen: %v", counts)
		}
	}
	close(stop)
	running.Wait()
	if got := text(t, s); got != "" {
		t.Errorf("left over:\n%s", got)
	}
}

func TestWritingDoesNotAllocate(t *testing.T) {
	s := newSink(Options{})
	h, c, g := s.Series(testHistogram, "a"), s.Series(testCounter, "a", "forward"), s.Series(testGauge, "a")
	l, total := s.Series(testLost, "a", "forward"), 0.0
	write := func() {
		h.Observe(0.0301)
		c.Add(1)
		total++
		l.SetTotal(total)
		g.Set(3)
	}
	write()
	if n := testing.AllocsPerRun(1000, write); n != 0 {
		t.Errorf("%v allocations per write, want 0", n)
	}
}
