package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"oneway.example/exporter/core/hourrow"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/serve/historyreport"
	"oneway.example/exporter/serve/promapi"
	"oneway.example/exporter/serve/slareport"
	"oneway.example/tests/history/blocks"
	"oneway.example/tests/history/scene"
	"oneway.example/tests/influx"
	"oneway.example/tests/promserver"
	"oneway.example/tests/testseed"
)

// The size of the history of TestMonthsAgree; `make history-months` has the whole year.
var (
	monthsDays  = flag.Int("months.days", 14, "days of the history of the test of months")
	monthsPaths = flag.Int("months.paths", 10, "paths of it")
	// A server is real where its program is given; else it is package promql over the blocks.
	monthsProgram = flag.String("months.prometheus", "", "file of the program of a Prometheus 3 that serves it")
)

// stores have one history: a Prometheus and an InfluxDB.
type stores struct {
	t      *testing.T
	prom   *promapi.Client
	server *promapi.Server
	api    *api // nil: a real server
	influx *influx.Server
	scene  *scene.Scene
	// columns is the expression of the table of months of the dashboard Trends.
	columns string
}

// pair is a path and a calendar month in the zone of its agent, up to the last day that the history records as a day.
type pair struct {
	path       scene.Path
	begin, end time.Time
}

func (p pair) String() string { return p.path.Name + " " + p.begin.Format("2006-01") }

// figures are of a month: n delays, and the buckets of their p50 and p95, whose limits are lower and upper.
type figures struct {
	n        float64
	p50, p95 [2]float64
}

// native is the bucket of a native histogram of schema 3 with a value.
func native(v float64) [2]float64 {
	i := math.Ceil(8*math.Log2(v) - 1e-6)
	return [2]float64{math.Exp2((i - 1) / 8), math.Exp2(i / 8)}
}

// differ names what differs in two figures of a month: a count, or buckets that have no value in common.
func differ(a, b figures) (what []string) {
	if math.Round(a.n) != math.Round(b.n) {
		what = append(what, fmt.Sprintf("n %.0f and %.0f", a.n, b.n))
	}
	apart := func(a, b [2]float64) bool { return a[0] >= b[1]*(1-1e-9) || b[0] >= a[1]*(1-1e-9) }
	if apart(a.p50, b.p50) {
		what = append(what, fmt.Sprintf("p50 %v and %v", a.p50, b.p50))
	}
	if apart(a.p95, b.p95) {
		what = append(what, fmt.Sprintf("p95 %v and %v", a.p95, b.p95))
	}
	return what
}

// TestMonthsAgree: of 20 months of paths the dashboard Trends, `oneway report`, `oneway trends` and InfluxQL over the rows of hours have the same count and bucket; they do
// not where an hour of either store is deleted.
func TestMonthsAgree(t *testing.T) {
	end := time.Date(2026, 11, 8, 0, 0, 0, 0, time.UTC) // the middle of it is a change of months, and Berlin ends daylight saving time
	made := scene.New(1, *monthsPaths, *monthsDays, 0, end)
	dir := t.TempDir()
	var points bytes.Buffer
	rowsOnly := newLines(&points, made.Paths)
	rowsOnly.rowsOnly = true
	h := &history{scene: made, profile: metric.Full, to: blocks.New(dir), lines: rowsOnly, progress: io.Discard}
	if err := h.make(); err != nil {
		t.Fatal(err)
	}
	if err := rowsOnly.flush(); err != nil {
		t.Fatal(err)
	}
	s := &stores{t: t, influx: newInflux(t), scene: made}
	load(t, s.influx, points.Bytes(), made.Begin.Add(-24*time.Hour), made.End.Add(24*time.Hour))
	if *monthsProgram == "" {
		s.api = &api{t: t, store: openStore(t, made, dir)}
		s.server = &promapi.Server{URL: s.api.serve()}
	} else {
		options := promserver.Options{Program: *monthsProgram, Data: dir, Args: []string{"--storage.tsdb.retention.time=10000d"}}
		s.server = &promapi.Server{URL: promserver.Start(t, options).URL}
	}
	s.prom = s.server.Connect()
	s.columns = monthColumns(t)
	pairs := s.pairs(20)
	if len(pairs) < 20 {
		t.Fatalf("%d months of paths, want 20", len(pairs))
	}
	t.Logf("%-28s %38s %38s %38s %38s %38s", "path and month", "dashboard Trends", "oneway report", "oneway trends", "InfluxQL", "oneway trends of InfluxDB")
	for _, p := range pairs {
		for _, d := range s.differences(p, true) {
			t.Error(d)
		}
	}
	one := pairs[0]
	hour := s.hourOf(one)
	s.influx.Query("oneway", fmt.Sprintf(`DELETE FROM "oneway_hour" WHERE "path" = '%s' AND time >= '%s' AND time < '%s'`, one.path.Name, hour.UTC().Format(time.RFC3339), hour.Add(time.Hour).UTC().Format(time.RFC3339)))
	if d := s.differences(one, false); len(d) == 0 {
		t.Errorf("%s: an hour is deleted in InfluxDB, and nothing differs", one)
	}
	if s.api == nil {
		return // Prometheus 3.16.0 fails in queries of native histograms where a part of their samples is deleted
	}
	two := pairs[1]
	begin := s.hourOf(two)
	s.api.hides = func(l labels.Labels, t int64) bool {
		return l.Get(model.MetricNameLabel) == rules.LongIncrease(metric.Delay) && l.Get(metric.Path) == two.path.Name && t > begin.UnixMilli() && t <= begin.Add(time.Hour).UnixMilli()
	}
	if d := s.differences(two, false); len(d) == 0 {
		t.Errorf("%s: an hour is deleted in Prometheus, and nothing differs", two)
	}
}

// hourOf is the begin of an hour of the month that the history has.
func (s *stores) hourOf(p pair) time.Time {
	return p.begin.Add(p.end.Sub(p.begin).Truncate(time.Hour)).Add(-33 * time.Hour)
}

// pairs are some of the months of the history.
func (s *stores) pairs(n int) (some []pair) {
	var all []pair
	for _, p := range s.scene.Paths {
		zone, err := time.LoadLocation(p.From.Zone)
		if err != nil {
			s.t.Fatal(err)
		}
		first, last := s.scene.Begin.In(zone), s.scene.End.In(zone).Add(-7*time.Hour-10*time.Minute) // a day is recorded from 6:10 to 7:10 of the next
		last = time.Date(last.Year(), last.Month(), last.Day(), 0, 0, 0, 0, zone)
		for begin := time.Date(first.Year(), first.Month(), 1, 0, 0, 0, 0, zone); begin.Before(last); begin = begin.AddDate(0, 1, 0) {
			end := begin.AddDate(0, 1, 0)
			if last.Before(end) {
				end = last
			}
			all = append(all, pair{p, begin, end})
		}
	}
	seed := testseed.Of(s.t)
	rand.New(rand.NewPCG(seed, seed)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all[:min(n, len(all))]
}

// differences are what differs in a month; shown: the figures are printed side by side.
func (s *stores) differences(p pair, shown bool) (all []string) {
	names := []string{"dashboard Trends", "oneway report", "oneway trends", "InfluxQL", "oneway trends of InfluxDB"}
	of := []figures{s.dashboard(p), s.report(p), s.trends(p, historyreport.Prometheus{Server: s.server}), s.influxQL(p), s.trends(p, historyreport.InfluxDB{URL: s.influx.URL, Database: "oneway"})}
	if shown {
		text := fmt.Sprintf("%-28s", p)
		for _, f := range of {
			text += fmt.Sprintf(" n %7.0f p50 %3.0f..%-4.0f p95 %3.0f..%-4.0f", f.n, 1e3*f.p50[0], 1e3*f.p50[1], 1e3*f.p95[0], 1e3*f.p95[1])
		}
		s.t.Log(text)
	}
	for i := range of {
		for _, what := range differ(of[0], of[i]) {
			all = append(all, fmt.Sprintf("%s, %s and %s: %s", p, names[0], names[i], what))
		}
	}
	return all
}

// monthColumns is the expression of the table of months in the committed dashboard.
func monthColumns(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../grafana-dashboards/dashboards/trends.json")
	if err != nil {
		t.Fatal(err)
	}
	type panel struct {
		Title   string
		Targets []struct{ RefID, Expr string }
		Panels  []json.RawMessage
	}
	var board struct{ Panels []panel }
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if strings.HasPrefix(p.Title, "Months, ") && len(p.Targets) == 1 {
			return p.Targets[0].Expr
		}
	}
	t.Fatal("the dashboard has no table of months with one expression")
	return ""
}

// dashboard has the cells of the dashboard: n, p50 and p95.
func (s *stores) dashboard(p pair) (f figures) {
	expr := strings.NewReplacer(
		`=~"$job"`, `=~".+"`, `=~"$instance"`, `="`+p.path.From.Name+`:9861"`, `=~"$agent"`, `="`+p.path.From.Name+`:9861"`, "$path", p.path.Name, "$probe", "stamp",
		"$direction", "forward", "$codec", ".*", "$__range", strconv.Itoa(int(s.scene.End.Sub(s.scene.Begin).Hours())+26)+"h", // a zone further west has hours of the day before
	).Replace(s.columns)
	all, err := s.prom.At(context.Background(), expr, s.scene.End.Add(75*time.Minute)) // the last hours of zones with half-hours end later
	if err != nil {
		s.t.Fatal(err)
	}
	cells := map[string]float64{}
	for _, one := range all {
		if string(one.Metric["month"]) == p.begin.Format("2006-01") {
			cells[string(one.Metric["cell"])] = float64(one.Value)
		}
	}
	return figures{cells["n"], native(cells["0.5"]), native(cells["0.95"])}
}

// report has the row of `oneway report --by=month`.
func (s *stores) report(p pair) figures {
	o := slareport.Options{Path: p.path.Name, Probe: "stamp", From: p.begin, To: p.end, By: slareport.Month, Interval: time.Hour}
	rows, err := slareport.Make(context.Background(), s.server, o, s.scene.End.AddDate(0, 1, 0))
	if err != nil || len(rows) != 1 || rows[0].Ways[0].P50 == nil {
		s.t.Fatalf("%s: %d rows, %v", p, len(rows), err)
	}
	w := rows[0].Ways[0]
	return figures{w.Delays, native(w.P50.Value), native(w.P95.Value)}
}

// trends has the month of `oneway trends`, whose values in InfluxDB have limits.
func (s *stores) trends(p pair, from historyreport.Source) figures {
	delay, _ := historyreport.MeasureByName("delay")
	q := historyreport.Query{Measure: delay, Labels: map[string]string{metric.Path: p.path.Name, metric.Direction: "forward"}, From: p.begin, To: p.end, Zone: p.begin.Location()}
	all, err := from.Read(context.Background(), q)
	if err != nil || len(all) != 1 || len(all[0].Months) != 1 {
		s.t.Fatalf("%s: %+v, %v", p, all, err)
	}
	m := all[0].Months[0]
	if m.Month != p.begin.Format("2006-01") {
		s.t.Errorf("%s: oneway trends has the month %s", p, m.Month)
	}
	within := func(v, bound *float64) [2]float64 {
		if bound == nil {
			return native(*v)
		}
		return [2]float64{*v - *bound - 1e-9, *v + *bound + 1e-9}
	}
	return figures{m.Delays, within(m.P50, m.P50Bound), within(m.P95, m.P95Bound)}
}

// influxQL has the classic buckets of the sums.
func (s *stores) influxQL(p pair) (f figures) {
	bounds := metric.Delay.Buckets
	columns := []string{fmt.Sprintf("sum(%q)", hourrow.Delays)}
	for _, b := range bounds {
		columns = append(columns, fmt.Sprintf("sum(%q)", hourrow.Bucket(hourrow.Delays, b)))
	}
	rows := s.influx.Query("oneway", fmt.Sprintf(`SELECT %s FROM "long"."oneway_hour" WHERE "path" = '%s' AND "direction" = 'forward' AND time >= '%s' AND time < '%s'`,
		strings.Join(columns, ", "), p.path.Name, p.begin.UTC().Format(time.RFC3339), p.end.UTC().Format(time.RFC3339)))
	if len(rows) != 1 {
		s.t.Fatalf("%s: InfluxQL has %d rows", p, len(rows))
	}
	f.n = rows[0][1].(float64)
	bucket := func(rank float64) [2]float64 {
		i := slices.IndexFunc(rows[0][2:], func(n any) bool { return n.(float64) >= rank*f.n })
		switch i {
		case -1:
			return [2]float64{bounds[len(bounds)-1], math.Inf(1)}
		case 0:
			return [2]float64{0, bounds[0]}
		}
		return [2]float64{bounds[i-1], bounds[i]}
	}
	f.p50, f.p95 = bucket(0.5), bucket(0.95)
	return f
}
