// Package slareport compares the report for service agreements (exporter/serve/slareport) with the exact figures of a history that a real
// Prometheus has: outages, an agent that was off, restarts, withheld delays, a day of 25 hours and the border of two months.
package slareport

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
)

const (
	scrape           = time.Minute
	packetsPerScrape = 60
	path             = "berlin"
)

// minute has what happened in the minute before a scrape.
type minute struct {
	at                   time.Time
	scraped, up, restart bool
	sent, lost           [2]int
	trips, withheld, low int // low and withheld: forward
	delays               [2][]float64
}

// history is nine days around the end of daylight saving time and of October.
func history(zone *time.Location) (all []minute) {
	at := func(day, hour int) time.Time { return time.Date(2026, time.October, day, hour, 0, 0, 0, zone) }
	within := func(t, from, to time.Time) bool { return t.After(from) && !t.After(to) }
	rng := rand.New(rand.NewPCG(1, 2)) // a fixed history
	for t := at(24, 0).Add(scrape); !t.After(at(33, 12)); t = t.Add(scrape) {
		m := minute{at: t, scraped: !within(t, at(27, 0), at(27, 6)), up: true}
		m.restart = t.Equal(at(27, 6).Add(scrape)) || t.Equal(at(29, 3).Add(7*time.Minute))
		down := within(t, at(26, 10), at(26, 10).Add(30*time.Minute)) || within(t, at(31, 23), at(32, 2))
		m.up = !down
		for d := range m.sent {
			if down && sample.Direction(d) == sample.Reverse {
				continue // nothing is reflected
			}
			m.sent[d] = packetsPerScrape
			for range packetsPerScrape {
				switch {
				case down || rng.Float64() < 0.004*float64(d+1):
					m.lost[d]++
				case d == 0 && within(t, at(28, 12), at(28, 18)):
					m.withheld++
				default:
					delay := 0.014 * (1 + float64(d)) * math.Exp(0.6*rng.NormFloat64())
					m.delays[d] = append(m.delays[d], delay)
					if d == 0 && delay < 0.005 {
						m.low++
					}
				}
			}
		}
		m.trips = m.lost[0] + m.lost[1]
		all = append(all, m)
	}
	return all
}

// buckets are the limits of the classic buckets.
func buckets() []float64 { return []float64{0.001, 0.005, 0.02, 0.05, 0.1, 0.3, 1.25, math.Inf(1)} }

// family is a metric whose samples are written together.
type family struct {
	name, kind string
	samples    func(m *minute, counter *counters) map[string]float64 // by suffix and further labels
}

// counters are those of an agent since its start.
type counters struct {
	sent, lost, delays   [2]float64
	bucket               [2][]float64
	trips, withheld, low float64
}

func (c *counters) add(m *minute) {
	if m.restart {
		*c = counters{}
	}
	for d := range c.sent {
		if c.bucket[d] == nil {
			c.bucket[d] = make([]float64, len(buckets()))
		}
		c.sent[d] += float64(m.sent[d])
		c.lost[d] += float64(m.lost[d])
		c.delays[d] += float64(len(m.delays[d]))
		for i, upper := range buckets() {
			for _, v := range m.delays[d] {
				if v <= upper {
					c.bucket[d][i]++
				}
			}
		}
	}
	c.trips, c.withheld, c.low = c.trips+float64(m.trips), c.withheld+float64(m.withheld), c.low+float64(m.low)
}

func directed(values [2]float64) map[string]float64 {
	return map[string]float64{`direction="forward"`: values[0], `direction="reverse"`: values[1]}
}

func families() []family {
	return []family{
		{"oneway_probe_up", "gauge", func(m *minute, _ *counters) map[string]float64 {
			up := 0.0
			if m.up {
				up = 1
			}
			return map[string]float64{"": up}
		}},
		{"oneway_probe_interval_seconds", "gauge", func(*minute, *counters) map[string]float64 { return map[string]float64{"": 1} }},
		{"oneway_packets_sent_total", "counter", func(_ *minute, c *counters) map[string]float64 { return directed(c.sent) }},
		{"oneway_packets_received_total", "counter", func(_ *minute, c *counters) map[string]float64 {
			return directed([2]float64{c.sent[0] - c.lost[0], c.sent[1] - c.lost[1]})
		}},
		{"oneway_round_trips_received_total", "counter", func(_ *minute, c *counters) map[string]float64 {
			return map[string]float64{"": c.sent[0] - c.trips}
		}},
		{"oneway_packets_lost_total", "counter", func(_ *minute, c *counters) map[string]float64 { return directed(c.lost) }},
		{"oneway_round_trips_lost_total", "counter", func(_ *minute, c *counters) map[string]float64 { return map[string]float64{"": c.trips} }},
		{"oneway_delay_invalid_total", "counter", func(_ *minute, c *counters) map[string]float64 {
			if c.withheld == 0 {
				return nil // absent until the first
			}
			return map[string]float64{`direction="forward",reason="clock_silent"`: c.withheld}
		}},
		{"oneway_delay_low_confidence_total", "counter", func(_ *minute, c *counters) map[string]float64 {
			return map[string]float64{`direction="forward"`: c.low}
		}},
		{"oneway_delay_max_seconds", "gauge", func(m *minute, _ *counters) map[string]float64 {
			all := map[string]float64{}
			for d, delays := range m.delays {
				if len(delays) > 0 {
					all[`direction="`+sample.Direction(d).String()+`"`] = slices.Max(delays)
				}
			}
			return all
		}},
		{"oneway_delay_seconds_bucket", "counter", func(_ *minute, c *counters) map[string]float64 {
			all := map[string]float64{}
			for d := range c.bucket {
				for i, n := range c.bucket[d] {
					le := "+Inf"
					if upper := buckets()[i]; !math.IsInf(upper, 1) {
						le = strconv.FormatFloat(upper, 'g', -1, 64)
					}
					all[fmt.Sprintf(`direction=%q,le=%q`, sample.Direction(d), le)] = n
				}
			}
			return all
		}},
	}
}

// openMetrics writes the history as text.
func openMetrics(w io.Writer, all []minute) {
	for _, one := range families() {
		fmt.Fprintf(w, "# TYPE %s unknown\n", one.name)
		var c counters
		for i := range all {
			m := &all[i]
			if c.add(m); !m.scraped {
				continue
			}
			for labels, v := range one.samples(m, &c) {
				if labels != "" {
					labels = "," + labels
				}
				fmt.Fprintf(w, "%s{job=\"oneway\",instance=\"a:9862\",path=%q,probe=\"stamp\"%s} %v %d\n", one.name, path, labels, v, m.at.Unix())
			}
		}
	}
}

// store makes a database of Prometheus from OpenMetrics text.
func store(t *testing.T, data string, text func(io.Writer)) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "history")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	text(w)
	fmt.Fprintln(w, "# EOF")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("NOT TESTED: promtool is not installed (Debian package prometheus)")
	}
	out, err := exec.CommandContext(t.Context(), promtool, "tsdb", "create-blocks-from", "--max-block-duration=744h", "openmetrics", name, data).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
