package slareport

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/serve/promapi"
	"oneway.example/exporter/serve/slareport"
)

// constant is a series that begins with value and grows by step each minute.
type constant struct {
	name, labels string
	step, value  float64
}

func begin() time.Time { return time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC) }

// minutes writes these series for a number of minutes.
func minutes(all []constant, n int) func(io.Writer) {
	return func(w io.Writer) {
		for j, c := range all {
			if j == 0 || all[j-1].name != c.name {
				fmt.Fprintf(w, "# TYPE %s unknown\n", c.name)
			}
			for i := range n {
				fmt.Fprintf(w, "%s{job=\"oneway\",instance=\"a:9862\",path=\"berlin\",probe=\"stamp\"%s} %v %d\n",
					c.name, c.labels, c.value+c.step*float64(i), begin().Add(time.Duration(i)*time.Minute).Unix())
			}
		}
	}
}

func reportOf(t *testing.T, s *promapi.Server, to time.Time) slareport.Row {
	t.Helper()
	rows, err := slareport.Make(t.Context(), s, slareport.Options{Path: path, From: begin(), To: begin().AddDate(0, 0, 1), By: slareport.Day, Interval: scrape}, to)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows[0]
}

// A reflector that does not number its replies: a third of the packets is lost, and nobody knows in which direction.
func TestLossOfAnUnknownDirectionIsUnknown(t *testing.T) {
	s := serveText(t, minutes([]constant{
		{name: "oneway_probe_up", value: 1},
		{name: "oneway_packets_sent_total", labels: `,direction="forward"`, step: 60},
		{name: "oneway_round_trips_lost_total", step: 20},
	}, 24*60))
	r := reportOf(t, s, begin().AddDate(0, 1, 0))
	near(t, "loss of round trips", r.RoundTrip, 20.0/60)
	for d, w := range r.Ways {
		if w.Loss != nil {
			t.Errorf("direction %d: loss %v, want none", d, *w.Loss)
		}
	}
}

// The reflector restarts often: of a fifth of the packets nobody knows whether it received them.
func TestUndecidedPacketsWidenTheLoss(t *testing.T) {
	s := serveText(t, minutes([]constant{
		{name: "oneway_probe_up", value: 1},
		{name: "oneway_packets_sent_total", labels: `,direction="forward"`, step: 60},
		{name: "oneway_packets_lost_total", labels: `,direction="forward"`, step: 6},
		{name: "oneway_packets_undecided_total", labels: `,direction="forward"`, step: 12},
		{name: "oneway_round_trips_lost_total", step: 18},
	}, 24*60))
	w := reportOf(t, s, begin().AddDate(0, 1, 0)).Ways[0]
	near(t, "least loss", w.Loss, 0.1)
	near(t, "highest loss", w.LossHighest, 0.3)
}

// A path that is dead in the last quarter of the first day, and in the first one of the second: only then a reply tells where.
func deadAtMidnight(slim bool) func(io.Writer) {
	return func(w io.Writer) {
		const day, dead = 24 * 60, 6 * 60
		sent := func(i int) int { return 60 * i }
		unheard := func(i int) int { return 60 * max(0, min(i, day+dead)-(day-dead)) }
		decided := func(i int) int { return map[bool]int{true: unheard(i)}[i >= day+dead] }
		values := []struct {
			series string
			full   bool
			value  func(i int) int
		}{
			{`oneway_probe_up{`, false, func(i int) int { return map[bool]int{true: 1}[i < day-dead || i >= day+dead] }},
			{`oneway_packets_sent_total{direction="forward",`, false, sent},
			{`oneway_packets_sent_total{direction="reverse",`, false, func(i int) int { return sent(i) - unheard(i) }},
			{`oneway_packets_received_total{direction="forward",`, true, func(i int) int { return sent(i) - unheard(i) }},
			{`oneway_packets_received_total{direction="reverse",`, true, func(i int) int { return sent(i) - unheard(i) }},
			{`oneway_packets_lost_total{direction="forward",`, false, decided},
			{`oneway_packets_lost_total{direction="reverse",`, false, func(int) int { return 0 }},
			{`oneway_packets_outstanding{direction="forward",`, true, func(i int) int { return unheard(i) - decided(i) }},
			{`oneway_packets_outstanding{direction="reverse",`, true, func(int) int { return 0 }},
			{`oneway_round_trips_lost_total{`, false, unheard},
		}
		last := ""
		for _, v := range values {
			if name, _, _ := strings.Cut(v.series, "{"); name != last {
				fmt.Fprintf(w, "# TYPE %s unknown\n", name)
				last = name
			}
			if v.full && slim {
				continue
			}
			for i := range 2 * day {
				fmt.Fprintf(w, "%sjob=\"oneway\",instance=\"a:9862\",path=\"berlin\",probe=\"stamp\"} %d %d\n", v.series, v.value(i), begin().Add(time.Duration(i)*time.Minute).Unix())
			}
		}
	}
}

// All packets of the outage may have been lost in either direction until it ends; the next day has the loss.
func TestOutageAtTheEndOfAPeriodMayBeLossOfEitherDirection(t *testing.T) {
	for _, slim := range []bool{false, true} {
		s := serveText(t, deadAtMidnight(slim))
		o := slareport.Options{Path: path, From: begin(), To: begin().AddDate(0, 0, 2), By: slareport.Day, Interval: scrape}
		rows, err := slareport.Make(t.Context(), s, o, begin().AddDate(0, 1, 0))
		if err != nil || len(rows) != 2 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for _, d := range sample.Directions() {
			near(t, fmt.Sprintf("slim %v: highest loss %s", slim, d), rows[0].Ways[d].LossHighest, 0.25)
		}
		near(t, "loss forward on the day of the begin", rows[0].Ways[sample.Forward].Loss, 0)
		next := rows[1].Ways
		if f := next[sample.Forward]; f.Loss == nil || f.LossHighest == nil || *f.Loss < 0.25 || *f.LossHighest > *f.Loss+0.001 {
			t.Errorf("slim %v: on the day of its end %s forward, highest %s; want the same", slim, shown(f.Loss), shown(f.LossHighest))
		}
		near(t, "highest loss in reverse on the day of the end", next[sample.Reverse].LossHighest, 0)
	}
}

// A reply of /probe has oneway_probe_up, too, with counters from 0: it is no row, and no report of its target is made.
func TestRepliesOfProbeAreNoPaths(t *testing.T) {
	s := serveText(t, func(w io.Writer) {
		for _, name := range []string{"oneway_probe_up", "probe_success"} {
			fmt.Fprintf(w, "# TYPE %s gauge\n", name)
			for i := range 24 * 60 {
				at := begin().Add(time.Duration(i) * time.Minute).Unix()
				if name == "oneway_probe_up" {
					fmt.Fprintf(w, "%s{job=\"oneway\",instance=\"a:9862\",path=%q,probe=\"stamp\"} 1 %d\n", name, path, at)
				}
				fmt.Fprintf(w, "%s{job=\"on-demand\",instance=\"b\",path=\"b\",probe=\"stamp\"} 1 %d\n", name, at)
			}
		}
	})
	if rule := "unless on (job, instance) last_over_time(" + metric.OnDemandSuccess.Name; !strings.Contains(rules.PathHost.Expr, rule) {
		t.Errorf("%s has another rule than %q, which the report has", rules.PathHost.Name, rule)
	}
	o := slareport.Options{From: begin(), To: begin().AddDate(0, 0, 1), By: slareport.Day, Interval: scrape}
	if rows, err := slareport.Make(t.Context(), s, o, begin().AddDate(0, 1, 0)); err != nil || len(rows) != 1 || rows[0].Path != path {
		t.Errorf("%+v, %v; want the path alone", rows, err)
	}
	o.Path = "b"
	if rows, err := slareport.Make(t.Context(), s, o, begin().AddDate(0, 1, 0)); err == nil || !strings.Contains(err.Error(), `has path "b" of /probe only`) {
		t.Errorf("%+v, %v", rows, err)
	}
}

// Profile slim counts neither withheld delays nor those of low confidence.
func TestSharesThatAreNotCountedAreUnknown(t *testing.T) {
	slim := []constant{
		{name: "oneway_probe_up", value: 1},
		{name: "oneway_packets_sent_total", labels: `,direction="forward"`, step: 60},
		{name: "oneway_packets_lost_total", labels: `,direction="forward"`, step: 6},
		{name: "oneway_round_trips_lost_total", step: 6},
		{name: "oneway_delay_seconds_bucket", labels: `,direction="forward",le="0.02"`, step: 54},
		{name: "oneway_delay_seconds_bucket", labels: `,direction="forward",le="+Inf"`, step: 54},
	}
	w := reportOf(t, serveText(t, minutes(slim, 24*60)), begin().AddDate(0, 1, 0)).Ways[0]
	near(t, "loss", w.Loss, 0.1)
	if w.Withheld != nil || w.LowConfidence != nil {
		t.Errorf("slim: withheld %s, of low confidence %s; want neither", shown(w.Withheld), shown(w.LowConfidence))
	}
	full := append(slim, constant{name: "oneway_probe_interval_seconds", value: 1})
	w = reportOf(t, serveText(t, minutes(full, 24*60)), begin().AddDate(0, 1, 0)).Ways[0]
	if w.Withheld == nil || w.LowConfidence == nil || *w.Withheld != 0 || *w.LowConfidence != 0 {
		t.Errorf("full: withheld %s, of low confidence %s; want 0", shown(w.Withheld), shown(w.LowConfidence))
	}
}

// TestShareOfDelaysThatProveAClockWrongIsReported: a clock is wrong, and a tenth of the forward delays shows it.
func TestShareOfDelaysThatProveAClockWrongIsReported(t *testing.T) {
	series := []constant{{name: "oneway_probe_up", value: 1}}
	for _, d := range sample.Directions() {
		label := fmt.Sprintf(`,direction=%q`, d)
		series = append(series,
			constant{name: "oneway_packets_sent_total", labels: label, step: 60},
			constant{name: "oneway_delay_seconds_bucket", labels: label + `,le="0.02"`, step: 60},
			constant{name: "oneway_delay_seconds_bucket", labels: label + `,le="+Inf"`, step: 60},
		)
	}
	slices.SortStableFunc(series, func(a, b constant) int { return strings.Compare(a.name, b.name) })
	series = append(series, constant{name: "oneway_delay_negative_total", labels: `,direction="forward"`, step: 6})
	r := reportOf(t, serveText(t, minutes(series, 24*60)), begin().AddDate(0, 1, 0))
	near(t, "negative", r.Ways[0].Negative, 0.1)
	if v := r.Ways[1].Negative; v != nil {
		t.Errorf("negative %s of a direction that does not count them, want none", shown(v))
	}
	var table strings.Builder
	if err := slareport.WriteCSV(&table, []slareport.Row{r}); err != nil || !strings.Contains(table.String(), "delays_forward_negative_ratio,") {
		t.Errorf("%s, %v", &table, err)
	}
}

// A period that ends seconds after a whole number of days, or has only begun.
func TestReportOfAPartShorterThanTheInterval(t *testing.T) {
	s := serveText(t, minutes([]constant{
		{name: "oneway_probe_up", value: 1},
		{name: "oneway_packets_sent_total", labels: `,direction="forward"`, step: 60},
	}, 2*24*60))
	for _, after := range []time.Duration{24*time.Hour + 20*time.Second, 24*time.Hour + time.Second, 36*time.Hour + 59*time.Second} {
		rows, err := slareport.Make(t.Context(), s, slareport.Options{Path: path, From: begin(), To: begin().AddDate(0, 1, 0), By: slareport.Month, Interval: scrape}, begin().Add(after))
		if err != nil {
			t.Errorf("%v after the begin: %v", after, err)
			continue
		}
		if r := rows[0]; r.Measured != after.Truncate(scrape) || r.Up != r.Measured || r.NoData != after-r.Measured || !r.Partial {
			t.Errorf("%v after the begin: %+v", after, r)
		}
	}
}

// An agent that ends in an outage leaves packets without an outcome: they are neither lost nor received.
func TestPacketsWithoutAnOutcomeAreNotCountedAsReceived(t *testing.T) {
	r := reportOf(t, serveText(t, minutes([]constant{
		{name: "oneway_probe_up", value: 1},
		{name: "oneway_packets_sent_total", labels: `,direction="forward"`, step: 60},
		{name: "oneway_packets_lost_total", labels: `,direction="forward"`, step: 3},
		{name: "oneway_packets_received_total", labels: `,direction="forward"`, step: 27},
		{name: "oneway_round_trips_lost_total", step: 6},
		{name: "oneway_round_trips_received_total", step: 24},
	}, 24*60)), begin().AddDate(0, 1, 0))
	near(t, "loss", r.Ways[0].Loss, 0.1)
	near(t, "loss of round trips", r.RoundTrip, 0.2)
}

// A load test each half an hour takes a minute, and loses all that the path loses; in one hour the path is down as well.
func loadTests(clock float64) func(io.Writer) {
	return func(w io.Writer) {
		values := map[string]func(i int) float64{
			`oneway_probe_up{path="berlin",probe="stamp",instance="a:9862",rack="7",site="own"}`: func(i int) float64 {
				if i%30 == 10 || i > 600 && i <= 660 {
					return 0
				}
				return 1
			},
			`oneway_path_test_timestamp_seconds{path="berlin",instance="a:9862"}`:                              func(i int) float64 { return clock + float64(begin().Unix()+int64((i-10)/30*30+10)*60-20) },
			`oneway_packets_sent_total{path="berlin",probe="stamp",instance="a:9862",direction="forward"}`:     func(i int) float64 { return float64(60 * i) },
			`oneway_packets_lost_total{path="berlin",probe="stamp",instance="a:9862",direction="forward"}`:     func(i int) float64 { return float64((i + 20) / 30 * 30) },
			`oneway_packets_received_total{path="berlin",probe="stamp",instance="a:9862",direction="forward"}`: func(i int) float64 { return float64(60*i - (i+20)/30*30) },
			`oneway_delay_max_seconds{path="berlin",probe="stamp",instance="a:9862",direction="forward"}`: func(i int) float64 {
				if i%30 == 10 {
					return 1
				}
				return 0.02
			},
			`oneway_path_info{path="berlin",probe="stamp",instance="a:9862",peer="192.0.2.9:862"}`:              func(int) float64 { return 1 },
			`oneway_path_labels_info{path="berlin",instance="a:9862",rack="7",site="berlin-1",region="europe"}`: func(int) float64 { return 1 },
			`oneway_probe_up{path="dead",probe="stamp",instance="b:9862"}`:                                      func(int) float64 { return 0 },
			`oneway_probe_up{path="dead",probe="voice",instance="b:9862"}`:                                      func(int) float64 { return 0 },
		}
		for _, series := range slices.Sorted(maps.Keys(values)) {
			name, _, _ := strings.Cut(series, "{")
			fmt.Fprintf(w, "# TYPE %s unknown\n", name)
			for i := 11; i < 24*60; i++ {
				fmt.Fprintf(w, "%s %v %d\n", series, values[series](i), begin().Add(time.Duration(i)*time.Minute).Unix())
			}
		}
	}
}

// The clock of the agent is right, or a day behind: then a time is recent where it changes.
func TestLoadTestsAreLeftOut(t *testing.T) {
	for _, clock := range []float64{0, -86400} {
		s := serveText(t, loadTests(clock))
		r := reportOf(t, s, begin().AddDate(0, 1, 0))
		near(t, "loss", r.Ways[0].Loss, 0)
		if tests := 48 * 2 * time.Minute; r.LoadTest < tests-4*time.Minute || r.LoadTest > tests || r.Measured+r.NoData+r.LoadTest != 24*time.Hour {
			t.Errorf("clock %v: %v of load tests, %v measured, %v without data", clock, r.LoadTest, r.Measured, r.NoData)
		}
		if r.Outages != 1 || r.Longest != 56*time.Minute {
			t.Errorf("%d outages of at most %v, want one of an hour without its 4 minutes of load tests", r.Outages, r.Longest)
		}
		if r.Ways[0].Max == nil || *r.Ways[0].Max != 0.02 {
			t.Errorf("the largest delay is %s, want 0.02: a load test's is left out", shown(r.Ways[0].Max))
		}
		o := slareport.Options{Path: path, From: begin(), To: begin().AddDate(0, 0, 1), By: slareport.Day, Interval: scrape, WithLoadTests: true}
		rows, err := slareport.Make(t.Context(), s, o, begin().AddDate(0, 1, 0))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "loss with load tests", rows[0].Ways[0].Loss, 0.5/30)
		if rows[0].LoadTest != r.LoadTest || rows[0].Measured != r.Measured+r.LoadTest {
			t.Errorf("with load tests: %v of them, %v measured; want %v, %v", rows[0].LoadTest, rows[0].Measured, r.LoadTest, r.Measured+r.LoadTest)
		}
	}
}

// The path is down for an hour. Half an hour within it is planned work. A load test in it is planned work, too.
func TestPlannedWorkIsLeftOut(t *testing.T) {
	labels := `{path="berlin",probe="stamp",instance="a:9862"}`
	s := serveText(t, func(w io.Writer) {
		minutes := func(name, labels string, value func(i int) (v float64, known bool)) {
			fmt.Fprintf(w, "# TYPE %s unknown\n", name)
			for i := 1; i < 24*60; i++ {
				if v, known := value(i); known {
					fmt.Fprintf(w, "%s%s %v %d\n", name, labels, v, begin().Add(time.Duration(i)*time.Minute).Unix())
				}
			}
		}
		down := func(i int) bool { return i > 600 && i <= 660 }
		minutes("oneway_path_maintenance_end_timestamp_seconds", `{path="berlin",instance="a:9862"}`, func(i int) (float64, bool) {
			return float64(begin().Add(640 * time.Minute).Unix()), i > 610 && i <= 640
		})
		minutes("oneway_path_test_timestamp_seconds", `{path="berlin",instance="a:9862"}`, func(i int) (float64, bool) {
			return float64(begin().Add(620 * time.Minute).Unix()), i >= 620
		})
		minutes("oneway_probe_up", labels, func(i int) (float64, bool) {
			if down(i) {
				return 0, true
			}
			return 1, true
		})
	})
	for _, withLoadTests := range []bool{false, true} {
		o := slareport.Options{Path: path, From: begin(), To: begin().AddDate(0, 0, 1), By: slareport.Day, Interval: scrape, WithLoadTests: withLoadTests}
		rows, err := slareport.Make(t.Context(), s, o, begin().AddDate(0, 1, 0))
		if err != nil {
			t.Fatal(err)
		}
		r := rows[0]
		if want := 31 * time.Minute; r.Maintenance != want || r.LoadTest != 0 || r.Measured+r.NoData+r.Maintenance != 24*time.Hour {
			t.Errorf("%v of maintenance, want %v; %v of load tests, %v measured, %v without data", r.Maintenance, want, r.LoadTest, r.Measured, r.NoData)
		}
		if down := r.Measured - r.Up; down != 29*time.Minute {
			t.Errorf("down for %v, want 29 minutes: the other ones are planned", down)
		}
		near(t, "availability", r.Availability, r.Up.Seconds()/r.Measured.Seconds())
	}
}

// rack is a label of the agent in Prometheus (a target label), which all of its series have; site is an external label too, which the
// label of the path precedes.
func TestReportOfAllPathsHasTheirTargetsAndLabels(t *testing.T) {
	o := slareport.Options{From: begin(), To: begin().AddDate(0, 0, 1), By: slareport.Day, Interval: scrape}
	rows, err := slareport.Make(t.Context(), serveText(t, loadTests(0)), o, begin().AddDate(0, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprint(r.Path, " ", r.Probe, " ", r.Instance, " ", r.Target, " ", r.Labels, " ", *r.Availability > 0.9))
	}
	want := []string{
		"berlin stamp a:9862 192.0.2.9:862 map[region:europe site:berlin-1] true",
		"dead stamp b:9862  map[] false", "dead voice b:9862  map[] false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
