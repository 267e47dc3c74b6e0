package rules

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
)

// The quantiles of several minutes must be as the head of oneway-recording.yml defines
// them, for any packets in the windows. The mixtures have fixed seeds.

const (
	mixtures = 150
	// seen is the number of windows in a range of 5 min with one every 10 s.
	seen = 30
	// evaluated is 5 s after a window's end: a sample at the very beginning of the
	// range would be in it for Prometheus 2, and not for 3.
	evaluated = 605
	scrapes   = evaluated/10 + 1
	// together is the number of mixtures in one promtool test, which takes at most 50,000 samples.
	together = 5
)

var ranks = []string{"0.5", "0.95", "0.99"}

// measured is one window: the delays of received packets, sorted, and the number of lost ones.
type measured struct {
	delays []float64
	lost   int
}

// quantile is the smallest delay that the share q of the packets did not exceed, lost
// ones counted as infinite.
func (m measured) quantile(q float64) float64 {
	rank := max(1, int(math.Ceil(q*float64(len(m.delays)+m.lost)*(1-1e-12))))
	if rank > len(m.delays) {
		return math.Inf(1)
	}
	return m.delays[rank-1]
}

// finite is the quantile as the agent exports it: a missing sample, NaN, if it is infinite.
func (m measured) finite(q float64) float64 {
	if v := m.quantile(q); !math.IsInf(v, 1) {
		return v
	}
	return math.NaN()
}

// mixture makes windows of one kind of path.
func mixture(rng *rand.Rand) []measured {
	base := math.Exp(math.Log(20e-6) + rng.Float64()*math.Log(1e4)) // 20 us to 200 ms
	offset := 0.0
	if rng.IntN(4) == 0 {
		offset = -2 * base * rng.Float64() // within what the clocks allow
	}
	kind, least, most := rng.IntN(6), 1+rng.IntN(10), 1+rng.IntN(200)
	loss := []float64{0, 0, 0.002, 0.02, 0.07, 0.6}[rng.IntN(6)]
	share, spread := []float64{0.02, 0.049, 0.06, 0.3, 0.49, 0.51}[rng.IntN(6)], 1+rng.Float64()*5
	windows := make([]measured, scrapes+1)
	for i := range windows {
		w := &windows[i]
		slow := rng.Float64() < share
		level := base * (1 + float64(i)/seen)
		for range least + rng.IntN(most) {
			if rng.Float64() < loss || kind == 5 && slow {
				w.lost++
				continue
			}
			d := base
			switch kind {
			case 0: // alike
				d *= 1 + 0.1*rng.ExpFloat64()
			case 1: // two values within each window
				if rng.Float64() < share {
					d *= spread
				}
			case 2: // two kinds of windows
				if slow {
					d *= spread
				}
			case 3: // a stall, or a queue
				if slow {
					d += 2 * rng.Float64()
				}
			case 4: // a route that becomes longer
				d = level
			}
			w.delays = append(w.delays, d+offset)
		}
		slices.Sort(w.delays)
	}
	return windows
}

// promtoolSeries writes input series of a path; NaN is a missing sample.
type promtoolSeries struct{ strings.Builder }

func (s *promtoolSeries) add(name, labels string, values []float64) {
	fmt.Fprintf(s, "      - series: '%s{%s}'\n        values: '", name, labels)
	for _, v := range values {
		if math.IsNaN(v) {
			s.WriteString("_ ")
			continue
		}
		s.WriteString(strconv.FormatFloat(v, 'g', -1, 64) + " ")
	}
	s.WriteString("'\n")
}

// addPath writes the agent's series of the windows, one in each scrape. Its histogram is
// ahead of them by a part of the next one, and may include windows that no scrape has.
func (s *promtoolSeries) addPath(i int, rng *rand.Rand) {
	labels := fmt.Sprintf(`path="p%d",probe="s",direction="forward"`, i)
	windows, ahead, unseen := mixture(rng), rng.Float64()*float64(rng.IntN(2)), rng.IntN(4) == 0
	gauges, buckets := map[string][]float64{}, make([][]float64, len(metric.Delay.Buckets)+1)
	counted := make([]float64, len(buckets))
	count := func(delays []float64) {
		for _, d := range delays {
			le, _ := slices.BinarySearch(metric.Delay.Buckets, d)
			for b := le; b < len(counted); b++ {
				counted[b]++
			}
		}
	}
	var all measured
	early := 0
	for k := range scrapes {
		w, next := windows[k], windows[k+1].delays
		count(w.delays[early:])
		early = int(ahead * float64(len(next)))
		count(next[:early])
		if unseen {
			count(windows[scrapes-k].delays)
		}
		for b := range buckets {
			buckets[b] = append(buckets[b], counted[b])
		}
		gauges["min"], gauges["max"] = append(gauges["min"], w.finite(0)), append(gauges["max"], w.finite(float64(len(w.delays))/float64(len(w.delays)+w.lost)))
		for _, q := range ranks {
			gauges[q] = append(gauges[q], w.finite(share(q)))
		}
		if k >= scrapes-seen {
			all.delays, all.lost = append(all.delays, w.delays...), all.lost+w.lost
		}
	}
	for b, values := range buckets {
		le := "+Inf"
		if b < len(metric.Delay.Buckets) {
			le = number(metric.Delay.Buckets[b])
		}
		s.add("oneway_delay_seconds_bucket", labels+`,le="`+le+`"`, values)
	}
	s.add("oneway_delay_min_seconds", labels, gauges["min"])
	s.add("oneway_delay_max_seconds", labels, gauges["max"])
	s.add("oneway_probe_interval_seconds", fmt.Sprintf(`path="p%d",probe="s"`, i), slices.Repeat([]float64{1}, scrapes))
	slices.Sort(all.delays)
	for _, q := range ranks {
		s.add("oneway_delay_quantile_seconds", labels+`,quantile_rank="`+q+`"`, gauges[q])
		s.add("truth", labels+`,quantile_rank="`+q+`"`, slices.Repeat([]float64{all.quantile(share(q))}, scrapes))
	}
	s.add("arrived", labels, slices.Repeat([]float64{float64(len(all.delays))}, scrapes))
}

func share(q string) float64 {
	v, err := strconv.ParseFloat(q, 64)
	if err != nil {
		panic(err)
	}
	return v
}

// TestRecordedQuantilesMatchTheirDescription: the limits hold, and the value is between
// them, for whatever mixture of windows.
func TestRecordedQuantilesMatchTheirDescription(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	const p = "oneway:delay_seconds:quantile5m"
	var checks strings.Builder
	for _, c := range []struct{ says, counts string }{
		{"the lower limit holds", p + "_lower > truth"},
		{"the upper limit holds", p + "_upper < truth"},
		{"there is a lower limit", "truth and on (path) (arrived > 0) unless " + p + "_lower"},
		{"there is an upper limit where every window has the quantile", "max_over_time(oneway_delay_quantile_seconds[5m]) and (count_over_time(oneway_delay_quantile_seconds[5m]) == 30) unless " + p + "_upper"},
		{"the figure is not below its limit", p + " < " + p + "_lower - 1e-12"},
		{"the figure is not above its limit", p + " > " + p + "_upper + 1e-12"},
		{"the figure is not below the smallest delay", p + " < ignoring (quantile_rank) group_left () min_over_time(oneway_delay_min_seconds[5m]) - 1e-12"},
		{"the figure is not above the largest delay", p + " > ignoring (quantile_rank) group_left () max_over_time(oneway_delay_max_seconds[5m]) + 1e-12"},
		{"there is a figure", "truth and on (path) (arrived > 0) unless " + p},
		{"they are in order where every window has both", p + `{quantile_rank="0.5"} > ignoring (quantile_rank) (` + p + `{quantile_rank="0.95"} and ` + p + `_upper) + 1e-12`},
	} {
		fmt.Fprintf(&checks, "      - expr: '%s # %s'\n        eval_time: %ds\n        exp_samples: []\n", c.counts, c.says, evaluated)
	}
	rules, err := filepath.Abs(deploy + "/rules")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "rule_files: [%s/oneway-thresholds.yml, %s/oneway-recording.yml]\nevaluation_interval: %ds\ntests:\n", rules, rules, evaluated)
	for first := 0; first < mixtures; first += together {
		var s promtoolSeries
		for i := range together {
			s.addPath(first+i, rand.New(rand.NewPCG(uint64(first+i), 1)))
		}
		fmt.Fprintf(&text, "  - interval: 10s\n    input_series:\n%s    promql_expr_test:\n%s", s.String(), checks.String())
	}
	name := filepath.Join(t.TempDir(), "mixtures.yml")
	if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, promtool, "test", "rules", name)
}
