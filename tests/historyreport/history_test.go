// Package historyreport reads the long-term series of a history from a real Prometheus, and compares what `oneway trends` and `oneway compare` say
// with what is in it.
package historyreport

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the host may lack a zone database

	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/estimate/history"
	"oneway.example/exporter/serve/historyreport"
	"oneway.example/exporter/serve/promapi"
	"oneway.example/tests/promserver"
)

// days around the end of daylight saving time, without one day of the agent.
const days, missing = 70, 20

// series writes the samples of the paths: umts is slower by a fifth, both by a fifth more in the evenings of weekdays. It returns the hours.
func series(t *testing.T, name string, zone *time.Location) (hours int) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	begin := time.Date(2026, time.September, 21, 0, 0, 0, 0, zone) // a Monday
	rng := rand.New(rand.NewPCG(1, 1))
	var delay, bound, lost, outcomes, labels strings.Builder
	for path, level := range map[string]float64{"umts": 0.06, "wifi": 0.05} {
		fmt.Fprintf(&labels, "oneway_path_labels_info{path=%q,instance=\"i\",job=\"oneway\",access=%[1]q} 1 %d\n", path, begin.AddDate(0, 0, days-1).Unix())
		for at := begin.Add(time.Hour); !at.After(begin.AddDate(0, 0, days)); at = at.Add(time.Hour) {
			middle := at.Add(-30 * time.Minute).In(zone)
			if middle.Sub(begin)/(24*time.Hour) == missing {
				continue
			}
			one := history.At(middle, level*(1+0.03*rng.NormFloat64()))
			if one.Kind == localday.Weekday && one.Hour >= 18 && one.Hour < 22 {
				one.Value += level / 5
			}
			common := fmt.Sprintf(`path=%q,probe="stamp",direction="forward",job="oneway",instance="i",hour="%d",day_type=%q,zone="Europe/Berlin"`, path, one.Hour, one.Kind)
			stamp := at.Unix() + 97 // in the first evaluation after the hour
			fmt.Fprintf(&delay, "%s{%s,quantile_rank=\"0.5\"} %g %d\n", rules.LongDelayQuantiles.Name, common, one.Value, stamp)
			fmt.Fprintf(&delay, "%s{%s,quantile_rank=\"0.95\"} %g %d\n", rules.LongDelayQuantiles.Name, common, 2*one.Value, stamp)
			fmt.Fprintf(&bound, "%s{%s} 0.0002 %d\n", rules.LongBound.Name, common, stamp)
			fmt.Fprintf(&lost, "%s{%s} %d %d\n", rules.LongIncrease(metric.PacketsLost), common, rng.IntN(10), stamp)
			fmt.Fprintf(&outcomes, "%s{%s} 3600 %d\n", rules.LongOutcomes.Name, common, stamp)
			if path == "umts" {
				hours++
			}
		}
	}
	for family, text := range map[string]*strings.Builder{
		rules.LongDelayQuantiles.Name: &delay, rules.LongBound.Name: &bound, rules.LongIncrease(metric.PacketsLost): &lost, rules.LongOutcomes.Name: &outcomes, metric.PathLabels.Name: &labels,
	} {
		fmt.Fprintf(w, "# TYPE %s gauge\n%s", family, text)
	}
	fmt.Fprintln(w, "# EOF")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return hours
}

func TestHistoriesOfARealPrometheus(t *testing.T) {
	program := promserver.Debian(t)
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("NOT TESTED: promtool is not installed (Debian package prometheus)")
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	hours := series(t, filepath.Join(dir, "series"), zone)
	if want := 24*days + 1 - 24; hours != want { // the day of 25 hours, and the missing one
		t.Fatalf("%d hours, want %d", hours, want)
	}
	data := filepath.Join(dir, "data")
	if out, err := exec.CommandContext(t.Context(), promtool, "tsdb", "create-blocks-from", "--max-block-duration=744h", "openmetrics", filepath.Join(dir, "series"), data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %.2000s", err, out)
	}
	s := promserver.Start(t, promserver.Options{Program: program, Data: data, Args: []string{"--storage.tsdb.retention.time=100y"}})
	from := time.Date(2026, time.September, 21, 0, 0, 0, 0, zone)
	source := historyreport.Prometheus{Server: &promapi.Server{URL: s.URL}}
	read := func(measure string, labels map[string]string) ([]historyreport.Series, historyreport.Measure) {
		m, _ := historyreport.MeasureByName(measure)
		all, err := source.Read(t.Context(), historyreport.Query{Measure: m, Labels: labels, From: from, To: from.AddDate(0, 0, days), Zone: time.UTC})
		if err != nil {
			t.Fatal(measure, err)
		}
		return all, m
	}
	all, m := read("delay", nil)
	if len(all) != 2 {
		t.Fatalf("%d histories", len(all))
	}
	o := historyreport.Options{Busy: [2]int{18, 22}, End: from.AddDate(0, 0, days), Zone: zone}
	for _, one := range all {
		h := historyreport.Analyze(one, m, o)
		text := strings.Join(h.Lines(one.Name(), m), "\n")
		if h.Samples != hours || h.Days != days-1 || h.MissingHours != 24 || h.Bound != 0.0002 || one.Labels["access"] != one.Labels["path"] {
			t.Errorf("%+v, want %d hours\n%s", h.Counts, hours, text)
		}
		if h.HoursOfDay == nil || h.HoursOfDay.Verdict.Outcome != string(history.Differs) || h.HoursOfDay.Highest < 18 || h.HoursOfDay.Highest > 21 || len(h.Changes) > 0 {
			t.Errorf("%s", text)
		}
	}
	for _, measure := range []string{"delay", "delay-p95"} {
		all, m = read(measure, nil)
		c := historyreport.Compare(historyreport.ByLabel(all, "access"), m, o)
		if len(c) != 1 || c[0].Verdict.Outcome != string(history.Differs) || c[0].Relative == nil || math.Abs(c[0].Relative.Value-0.2) > 0.01 || c[0].Pairs != hours {
			t.Errorf("%s: %+v", measure, c)
		}
	}
	loss, m := read("loss", map[string]string{"access": "umts"})
	if h := historyreport.Analyze(loss[0], m, o); len(loss) != 1 || h.Samples != hours || math.Abs(h.Median-4.5/3600) > 0.0001 || h.Comparisons[0].Verdict.Outcome != string(history.Equal) {
		t.Errorf("%d, %+v", len(loss), h)
	}
}
