package main

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"oneway.example/exporter/core/metric"
	"oneway.example/tests/history/blocks"
	"oneway.example/tests/history/copies"
	"oneway.example/tests/history/cost"
	"oneway.example/tests/history/scene"
	"oneway.example/tests/history/simagent"
)

// store is blocks that a test has made.
type store struct {
	tb    testing.TB
	scene *scene.Scene
	dir   string
	db    *tsdb.DBReadOnly
}

func makeStore(tb testing.TB, s *scene.Scene, profile metric.Profile) *store {
	tb.Helper()
	dir := tb.TempDir()
	h := &history{scene: s, profile: profile, to: blocks.New(dir), progress: io.Discard}
	if err := h.make(); err != nil {
		tb.Fatal(err)
	}
	return openStore(tb, s, dir)
}

func openStore(tb testing.TB, s *scene.Scene, dir string) *store {
	tb.Helper()
	if err := os.Mkdir(filepath.Join(dir, "wal"), 0o755); err != nil { // a reader expects one
		tb.Fatal(err)
	}
	db, err := tsdb.OpenDBReadOnly(dir, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return &store{tb, s, dir, db}
}

// Querier implements storage.Queryable.
func (s *store) Querier(mint, maxt int64) (storage.Querier, error) { return s.db.Querier(mint, maxt) }

// query is the result of an instant query at the end of the scene, by labels.
func (s *store) query(expr string) map[string]float64 {
	s.tb.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 30, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	q, err := engine.NewInstantQuery(context.Background(), s, nil, expr, s.scene.End.Add(50*time.Minute))
	if err != nil {
		s.tb.Fatal(err)
	}
	defer q.Close()
	v, err := q.Exec(context.Background()).Vector()
	if err != nil {
		s.tb.Fatalf("%s: %v", expr, err)
	}
	all := map[string]float64{}
	for _, one := range v {
		all[one.Metric.String()] = one.F
	}
	return all
}

// visit calls f with each sample of a series name: the time, and the value of a float or the count of a histogram.
func (s *store) visit(name string, f func(l labels.Labels, at time.Time, v float64)) {
	s.tb.Helper()
	q, err := s.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer q.Close()
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, name))
	for set.Next() {
		it := set.At().Iterator(nil)
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			if kind == chunkenc.ValFloat {
				t, v := it.At()
				f(set.At().Labels(), time.UnixMilli(t), v)
			} else {
				t, h := it.AtFloatHistogram(nil)
				f(set.At().Labels(), time.UnixMilli(t), h.Count)
			}
		}
	}
	if err := set.Err(); err != nil {
		s.tb.Fatal(err)
	}
}

// autumn is a scene of 40 days in which Berlin and New York end daylight saving time, with one path of each site.
func autumn() *scene.Scene {
	return scene.New(1, 5, 40, 0, time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC))
}

func site(tb testing.TB, name string) scene.Site {
	for _, s := range scene.Sites() {
		if s.Name == name {
			return s
		}
	}
	tb.Fatalf("no site %s", name)
	return scene.Site{}
}

// TestHistoryOfFortyDays makes one and reads it: each value is compared with the scene, not with the code that stored it.
func TestHistoryOfFortyDays(t *testing.T) {
	s := makeStore(t, autumn(), metric.Full)
	t.Run("each local hour has one sample with its own labels", func(t *testing.T) { hoursAreRight(t, s) })
	t.Run("counts are exact", func(t *testing.T) { countsAreExact(t, s) })
	t.Run("a run counts once", func(t *testing.T) { runsAreRight(t, s) })
	t.Run("quantiles of a month follow from the histograms", func(t *testing.T) { quantilesAreRight(t, s) })
	t.Run("the effect is there, and nowhere else", func(t *testing.T) { effectIsRight(t, s) })
}

func hoursAreRight(t *testing.T, s *store) {
	days := map[string]map[string]int{} // by instance and local day
	n := 0
	s.visit("oneway:long:(packets_sent|delay_seconds):increase1h", func(l labels.Labels, at time.Time, _ float64) {
		of := site(t, strings.TrimSuffix(l.Get("instance"), ":9861"))
		calendar, err := scene.Calendar(of)
		if err != nil {
			t.Fatal(err)
		}
		middle := calendar.Local(at.Add(-30 * time.Minute))
		if got, want := l.Get("hour"), fmt.Sprint(middle.Hour()); got != want {
			t.Fatalf("%v has hour %s, want %s", at, got, want)
		}
		if got, want := l.Get("day_type"), string(calendar.DayType(middle)); got != want {
			t.Fatalf("%v has day_type %s, want %s", at, got, want)
		}
		if l.Get("zone") != of.Zone {
			t.Fatalf("zone %s, want %s", l.Get("zone"), of.Zone)
		}
		if middle.Minute() != 30 {
			t.Fatalf("the middle of the hour is %v", middle)
		}
		n++
		if l.Get("direction") == "forward" && l.Get(model.MetricNameLabel) == "oneway:long:delay_seconds:increase1h" {
			if days[of.Name] == nil {
				days[of.Name] = map[string]int{}
			}
			days[of.Name][middle.Format(time.DateOnly)]++
		}
	})
	if want := 5 * 2 * 2 * 40 * 24; n < want*999/1000 || n > want {
		t.Errorf("%d samples, want %d, less a thousandth", n, want)
	}
	for name, changed := range map[string]string{"berlin": "2026-10-25", "newyork": "2026-11-01"} {
		for day, hours := range days[name] {
			want := 24
			if day == changed {
				want = 25
			}
			if hours != want && day != "2026-10-05" && day != "2026-10-06" && day != "2026-11-14" && day != "2026-11-15" {
				t.Errorf("%s: %s has %d hours, want %d", name, day, hours, want)
			}
		}
	}
}

// sent are the packets that a path sends in a scene, by the times in which its agent runs.
func sent(s *scene.Scene, from string) (n float64) {
	total := s.End.Sub(s.Begin)
	for _, off := range s.Off[from] {
		total -= off.End.Sub(off.Begin)
	}
	return total.Seconds() / 10
}

func countsAreExact(t *testing.T, s *store) {
	for _, p := range s.scene.Paths {
		of := fmt.Sprintf(`{path=%q,direction="forward"}[41d]`, p.Name)
		got := s.query("sum(sum_over_time(oneway:long:packets_sent:increase1h" + of + "))")["{}"]
		restarts := float64(len(s.scene.Off[p.From.Name]))
		if want := sent(s.scene, p.From.Name); math.Abs(got-want) > 0.001+3*restarts {
			t.Errorf("%s: %v packets, want %v", p.Name, got, want)
		}
		lost := s.query("sum(sum_over_time(oneway:long:packets_lost:increase1h" + of + "))")["{}"]
		received := s.query("sum(sum_over_time(oneway:long:packets_received:increase1h" + of + "))")["{}"]
		if math.Abs(got-lost-received) > 0.01 || lost < 1 {
			t.Errorf("%s: %v packets sent, %v received, %v lost", p.Name, got, received, lost)
		}
		whole := 0
		s.visit("oneway:long:packets_sent:increase1h", func(l labels.Labels, at time.Time, v float64) {
			hour := scene.Span{Begin: at.Add(-time.Hour), End: at}
			if l.Get("path") != p.Name || l.Get("direction") != "forward" || slices.ContainsFunc(s.scene.Off[p.From.Name], hour.Overlaps) {
				return
			}
			if whole++; v != 360 {
				t.Errorf("%s at %v: %v packets, want 360", p.Name, at, v)
			}
		})
		if whole < 900 {
			t.Errorf("%s has %d whole hours", p.Name, whole)
		}
	}
}

func runsAreRight(t *testing.T, s *store) {
	for _, p := range s.scene.Paths {
		if p.Runs.PerDay == 0 {
			continue
		}
		of := fmt.Sprintf(`sum(sum_over_time(oneway:long:tcp_run_throughput_bytes_per_second:increase1h{path=%q}[41d]))`, p.Name)
		restarts := float64(len(s.scene.Off[p.From.Name]))
		if got, want := s.query("histogram_count(" + of + ")")["{}"], float64(40*p.Runs.PerDay); math.Abs(got-want) > 0.01+restarts {
			t.Errorf("%s: %v runs, want %v", p.Name, got, want)
		}
		want := p.Runs.Mean
		if p.Kind == scene.Effect { // 20 % less in 4 of 24 hours of 5 of 7 days
			want *= 1 - 0.2*4/24*5/7
		}
		if got := 8 * s.query("histogram_avg(" + of + ")")["{}"]; math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: a mean of %v bit/s, want %v", p.Name, got, want)
		}
	}
}

// quantilesAreRight compares the p95 of all hours with the exact one: the packets of a path without runs follow from the scene.
func quantilesAreRight(t *testing.T, s *store) {
	const name = "kathmandu-to-seoul"
	i := slices.IndexFunc(s.scene.Paths, func(p scene.Path) bool { return p.Name == name })
	p := &s.scene.Paths[i]
	exact := simagent.Delays(s.scene, p)
	slices.Sort(exact)
	for _, q := range []float64{0.5, 0.95, 0.99} {
		want := exact[int(math.Ceil(q*float64(len(exact))))-1].Seconds()
		got := s.query(fmt.Sprintf(`histogram_quantile(%v, sum(sum_over_time(oneway:long:delay_seconds:increase1h{path=%q,direction="forward"}[41d])))`, q, name))["{}"]
		if math.Abs(got-want) > 0.044*want {
			t.Errorf("q%v is %v s, want %v s within 4.4 %%", q, got, want)
		}
	}
	if got := s.query(fmt.Sprintf(`histogram_count(sum(sum_over_time(oneway:long:delay_seconds:increase1h{path=%q,direction="forward"}[41d])))`, name))["{}"]; math.Abs(got-float64(len(exact))) > 3 {
		t.Errorf("%v delays, want %d", got, len(exact))
	}
}

func effectIsRight(t *testing.T, s *store) {
	for _, p := range s.scene.Paths {
		ratio := func(day string) float64 {
			of := fmt.Sprintf(`avg(avg_over_time(oneway:long:delay_seconds:quantile1h{path=%q,direction="forward",quantile_rank="0.5",day_type=%q,`, p.Name, day)
			return s.query(of + `hour=~"18|19|20|21"}[41d]))`)["{}"] / s.query(of + `hour!~"18|19|20|21"}[41d]))`)["{}"]
		}
		want := 1.0
		switch p.Kind {
		case scene.Effect:
			want = 1.2
		case scene.Constant:
		default:
			continue
		}
		if got := ratio("weekday"); math.Abs(got-want) > 0.03 {
			t.Errorf("%s: the evening of weekdays is %v times as slow, want %v", p.Name, got, want)
		}
		if got := ratio("weekend"); math.Abs(got-1) > 0.03 {
			t.Errorf("%s: the evening of weekends is %v times as slow, want 1", p.Name, got)
		}
	}
}

// TestNamedDayHasAScrapeEachFifteenSeconds: and its hours are computed from them.
func TestNamedDayHasAScrapeEachFifteenSeconds(t *testing.T) {
	s := makeStore(t, scene.New(2, 1, 2, 1, time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)), metric.Slim)
	for expr, want := range map[string]float64{
		`sum(count_over_time(oneway_packets_sent_total{direction="forward"}[24h] offset 50m))`:                     24 * 240,
		`sum(sum_over_time(oneway:long:packets_sent:increase1h{direction="forward"}[24h]))`:                        86400,
		`sum(count_over_time(oneway:long:delay_seconds:quantile1h{direction="forward",quantile_rank="0.5"}[24h]))`: 24,
		`sum(sum_over_time(oneway:long:measured_minutes:count1h[24h]))`:                                            1440,
		`sum(sum_over_time(oneway:long:measured_minutes:count1h[24h] offset 24h))`:                                 1440,
		`sum(sum_over_time(oneway:long:packets_sent:increase1h{direction="forward"}[24h] offset 24h))`:             8640,
	} {
		if got := s.query(expr)["{}"]; got != want {
			t.Errorf("%s is %v, want %v", expr, got, want)
		}
	}
}

// TestCopiesHaveTheSamplesUnderOtherNames: a reader of Prometheus reads them.
func TestCopiesHaveTheSamplesUnderOtherNames(t *testing.T) {
	s := makeStore(t, scene.New(1, 2, 2, 0, time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)), metric.Slim)
	to := t.TempDir()
	const copied = 25
	r, err := copies.Make(copies.Options{From: s.dir, To: to, Copies: copied, Names: regexp.MustCompile("^oneway:long:|^oneway_path_labels_info$")})
	if err != nil {
		t.Fatal(err)
	}
	many := openStore(t, s.scene, to)
	if r.Blocks != 1 || r.Samples == 0 || r.Bytes == 0 {
		t.Errorf("result %+v", r)
	}
	for expr, want := range map[string]float64{
		"count(count by (path) (count_over_time(oneway:long:packets_sent:increase1h[2d])))":     2 * copied,
		"count(count by (instance) (count_over_time(oneway:long:packets_sent:increase1h[2d])))": 2 * 3, // 12 copies an agent
		"count(count by (site) (count_over_time(oneway_path_labels_info[2d])))":                 2 * 10,
	} {
		if got := many.query(expr)["{}"]; got != want {
			t.Errorf("%s is %v, want %v", expr, got, want)
		}
	}
	const sum = `histogram_count(sum(sum_over_time(oneway:long:delay_seconds:increase1h{path=~%q}[2d])))`
	if got, want := many.query(fmt.Sprintf(sum, "berlin.*-0007"))["{}"], s.query(fmt.Sprintf(sum, "berlin.*"))["{}"]; got != want || got < 10_000 {
		t.Errorf("copy 7 has %v delays, want %v", got, want)
	}
}

// TestSeedDecidesAll: equal seeds have equal samples.
func TestSeedDecidesAll(t *testing.T) {
	sum := func(seed uint64) uint64 {
		s := makeStore(t, scene.New(seed, 1, 1, 0, time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)), metric.Full)
		h := fnv.New64a()
		s.visit(".+", func(l labels.Labels, at time.Time, v float64) { fmt.Fprintln(h, l, at.UnixMilli(), v) })
		return h.Sum64()
	}
	if a, b := sum(1), sum(1); a != b {
		t.Error("two histories of a seed differ")
	}
	if sum(1) == sum(2) {
		t.Error("histories of two seeds are equal")
	}
}

// TestSeriesOfAPathAreTheDocumented: a path without load tests, in both profiles.
func TestSeriesOfAPathAreTheDocumented(t *testing.T) {
	text, err := os.ReadFile("../../deploy/prometheus/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range []metric.Profile{metric.Full, metric.Slim} {
		s := makeStore(t, scene.New(1, 1, 3, 0, time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)), profile)
		samples := map[string]int{} // of a day, by series
		all := 0
		day := s.scene.Begin.AddDate(0, 0, 1)
		s.visit("oneway:long:.+", func(l labels.Labels, at time.Time, _ float64) {
			if l.Get(metric.Path) == s.scene.Paths[0].Name && at.After(day) && !at.After(day.AddDate(0, 0, 1)) {
				samples[labels.NewBuilder(l).Del("hour", "day_type", "month").Labels().String()]++
				all++
			}
		})
		hours := 0
		for series, n := range samples {
			want := 24
			if strings.Contains(series, `1d"`) {
				want = 1
			} else {
				hours++
			}
			if n != want {
				t.Errorf("%v: %d samples a day of %s, want %d", profile, n, series, want)
			}
		}
		want := fmt.Sprintf("| `%v` | %d | %d | %.2f million |", profile, hours, len(samples)-hours, float64(365*all)/1e6)
		if !strings.Contains(string(text), want) {
			t.Errorf("deploy/prometheus/README.md lacks the row %q", want)
		}
	}
}

// TestLinesHaveRunsAndStates: the line protocol has a point of each run, as the output influxdb writes it: with its direction, and the hour and the kind of day of its
// end; and the states of the paths.
func TestLinesHaveRunsAndStates(t *testing.T) {
	made := scene.New(1, 10, 4, 0, time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC))
	var text bytes.Buffer
	l := newLines(&text, made.Paths)
	h := &history{scene: made, profile: metric.Slim, to: blocks.New(t.TempDir()), lines: l, progress: io.Discard}
	if err := h.make(); err != nil {
		t.Fatal(err)
	}
	if err := l.flush(); err != nil {
		t.Fatal(err)
	}
	states := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^oneway_probe,.*path=([^,]+),.*path_state=(\d)`).FindAllStringSubmatch(text.String(), -1) {
		states[m[1]+" "+m[2]]++
	}
	// The second one has delays above the default limit, 150 ms, in the hours of most days.
	if up, slow := states["kathmandu-to-berlin 0"], states["kolkata-to-seoul 2"]; up < 90 || slow < 70 {
		t.Errorf("states of paths %v, want 90 hours up of kathmandu-to-berlin, and 70 degraded of kolkata-to-seoul", states)
	}
	pointRE := regexp.MustCompile(`^oneway_run_tcp,.*day_type=(\w+),direction=reverse,.*host=(\w+):9861,local_hour=(\d+),path=([^,]+),.*tcp_throughput_bytes_per_second=\d.* (\d+)$`)
	found := map[string]int{}
	for line := range strings.Lines(text.String()) {
		m := pointRE.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		begin, err := strconv.ParseInt(m[5], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		calendar, err := scene.Calendar(site(t, m[2]))
		if err != nil {
			t.Fatal(err)
		}
		end := time.Unix(0, begin).Add(time.Minute)
		if m[1] != string(calendar.DayType(end)) || m[3] != strconv.Itoa(calendar.Local(end).Hour()) || !strings.Contains(line, `run="`+end.UTC().Format("20060102T150405Z")) {
			t.Errorf("a run that ended at %v is %s", end, line)
		}
		found[m[4]]++
	}
	paths := 0
	for i := range made.Paths {
		p := &made.Paths[i]
		want, off := 4*p.Runs.PerDay, 0.0
		for _, span := range made.Off[p.From.Name] {
			off += span.End.Sub(span.Begin).Hours() / 24 * float64(p.Runs.PerDay)
		}
		if n := found[p.Name]; n > want || float64(n) < float64(want)-off-2 {
			t.Errorf("%s has %d runs, want %d less %.1f", p.Name, n, want, off)
		}
		if want > 0 {
			paths++
		}
	}
	if paths == 0 {
		t.Error("no path of the scene has runs")
	}
}

// TestRulesAreEvaluatedOverBlocks: a rule reads what another records.
func TestRulesAreEvaluatedOverBlocks(t *testing.T) {
	s := makeStore(t, scene.New(2, 1, 2, 1, time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)), metric.Full)
	groups, err := cost.Evaluate(s.dir, s.scene.End.Add(-3*time.Hour), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, g := range groups {
		series[g.Name] = g.Series
		if g.CPU <= 0 || g.Dearest().CPU > g.CPU {
			t.Errorf("%+v: want a time, and no rule above it", g)
		}
	}
	if series["oneway-30s"] == 0 || series["oneway-delay"] < 20 || series["oneway-delay-30s"] < 40 {
		t.Errorf("series by group: %v", series)
	}
}
