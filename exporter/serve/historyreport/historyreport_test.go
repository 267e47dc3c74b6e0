package historyreport

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the host may lack a zone database

	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/estimate/history"
	"oneway.example/exporter/serve/promapi"
)

var monday = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

func query(t *testing.T, measure string) Query {
	t.Helper()
	m, ok := MeasureByName(measure)
	if !ok {
		t.Fatal(measure)
	}
	return Query{Measure: m, From: monday, To: monday.AddDate(0, 0, 40), Zone: time.UTC}
}

// prometheus replies with an hourly series of 40 days: the value is the number of the hour, recorded a minute after it.
func prometheus(t *testing.T) *promapi.Server { return prometheusWithout(t, 0) }

// prometheusWithout withholds the quantile of each so manieth hour; 0: of none.
func prometheusWithout(t *testing.T, each int) *promapi.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/series") {
			fmt.Fprint(w, `{"status":"success","data":[{"__name__":"oneway_path_labels_info","path":"a","instance":"i","access":"umts"}]}`)
			return
		}
		if strings.Contains(r.URL.Path, "/label/") {
			fmt.Fprint(w, `{"status":"success","data":["a"]}`)
			return
		}
		var end, length int64
		text := r.FormValue("query")
		_, err1 := fmt.Sscan(r.FormValue("time"), &end)
		_, err2 := fmt.Sscanf(text[strings.LastIndex(text, "[")+1:], "%ds]", &length)
		if err1 != nil || err2 != nil {
			t.Error(err1, err2, text)
		}
		factor, rank := 1.0, `,"quantile_rank":"0.5"`
		if strings.Contains(text, "error_bound") || strings.Contains(text, "outcomes") {
			factor, rank = 10, ""
		}
		var series []string
		for hour := range 24 {
			var values []string
			for day := range 40 {
				n := 24*day + hour
				at := monday.Add(time.Duration(n+1)*time.Hour + time.Minute).Unix()
				withheld := each > 0 && n%each == 0 && factor == 1
				if at >= end-length && at <= end && !withheld { // both ends
					values = append(values, fmt.Sprintf(`[%d,"%g"]`, at, factor*float64(n)))
				}
			}
			if len(values) > 0 {
				series = append(series, fmt.Sprintf(`{"metric":{"__name__":"x","path":"a","instance":"i","direction":"forward","hour":"%d","day_type":"holiday","zone":"Asia/Seoul"%s},"values":[%s]}`, (hour+9)%24, rank, strings.Join(values, ",")))
			}
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, strings.Join(series, ","))
	}))
	t.Cleanup(s.Close)
	return &promapi.Server{URL: s.URL}
}

func TestPrometheusHasEachHourOnceWithItsLabels(t *testing.T) {
	q := query(t, "delay")
	steps := [][2]int{}
	q.Progress = func(done, all int) { steps = append(steps, [2]int{done, all}) }
	all, err := Prometheus{prometheus(t)}.Read(t.Context(), q)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if len(steps) != 2 || steps[0] != [2]int{1, 2} || steps[1] != [2]int{2, 2} {
		t.Errorf("progress %v", steps)
	}
	s := all[0]
	if s.Name() != "a forward" || s.Labels["access"] != "umts" || s.Labels["hour"] != "" || len(s.Labels) != 4 {
		t.Errorf("%v", s.Labels)
	}
	seen := map[float64]bool{}
	for _, one := range s.Samples {
		n := int(one.Value)
		local := monday.Add(time.Duration(n)*time.Hour + 31*time.Minute).In(time.FixedZone("", 9*3600))
		if seen[one.Value] || one.Bound != 10*one.Value || one.Hour != (n+9)%24 || one.Day != history.DayOf(local) || one.Kind != localday.Holiday || !one.Time.Equal(local) {
			t.Fatalf("%+v, want %v", one, local)
		}
		seen[one.Value] = true
	}
	if len(seen) != 40*24 { // also the last one, which is recorded after the end
		t.Errorf("%d hours", len(seen))
	}
	q.Labels = map[string]string{"access": "wifi"}
	if _, err := (Prometheus{prometheus(t)}).Read(t.Context(), q); err == nil || !strings.Contains(err.Error(), `has access=wifi (there are umts) from 2026-01-05`) {
		t.Error(err)
	}
	loss, err := Prometheus{prometheus(t)}.Read(t.Context(), query(t, "loss"))
	if err != nil || len(loss) != 1 || len(loss[0].Counted) != 40*24-1 || loss[0].Counted[5].Whole != 10*loss[0].Counted[5].Events { // the first hour has no packet
		t.Error(len(loss), err)
	}
}

func TestInfluxDBHasHoursOfTheZone(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.FormValue("q"))
		if r.FormValue("db") != "d" || r.Header.Get("Authorization") != "Token x" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.Contains(r.FormValue("q"), "oneway_hour") {
			fmt.Fprint(w, `{"results":[{}]}`)
			return
		}
		fmt.Fprintf(w, `{"results":[{"series":[{"name":"oneway_delay","tags":{"path":"a","direction":"forward","host":"h"},"columns":["time","mean","max"],"values":[[%d,0.02,0.001],[%d,null,0.001],[%d,0.03,null]]}]}]}`,
			monday.Unix(), monday.Unix()+3600, monday.Unix()+7200)
	}))
	defer s.Close()
	q := query(t, "delay")
	q.To = monday.AddDate(0, 0, 7)
	q.Labels = map[string]string{"path": "a"}
	q.Zone, _ = time.LoadLocation("Asia/Seoul")
	all, err := InfluxDB{URL: s.URL, Database: "d", Authorization: "Token x"}.Read(t.Context(), q)
	if err != nil || len(all) != 1 || len(all[0].Samples) != 1 {
		t.Fatal(all, err)
	}
	if one := all[0].Samples[0]; one.Value != 0.02 || one.Bound != 0.001 || one.Hour != 9 || one.Kind != localday.Weekday {
		t.Errorf("%+v", one)
	}
	want := `SELECT mean("delay_p50_seconds"), max("delay_error_bound_seconds") FROM "oneway_delay" WHERE time >= 1767571200s AND time < 1768176000s AND "path" = 'a' GROUP BY time(1h), * fill(none)`
	if len(asked) != 3 || asked[2] != want || !strings.Contains(asked[0], `FROM "long"."oneway_hour" WHERE`) || !strings.Contains(asked[1], `FROM "oneway_hour" WHERE`) {
		t.Errorf("%q, want %q", asked, want)
	}
	if _, err := (InfluxDB{URL: s.URL, Database: "d"}).Read(t.Context(), q); err == nil || !strings.Contains(err.Error(), "--influxdb.token-file") {
		t.Error(err)
	}
	q.Labels = map[string]string{"path": `a' OR 'b\`}
	if text := statement(q, "", q.From, q.To); !strings.Contains(text, `'a\' OR \'b\\'`) {
		t.Error(text)
	}
}

func TestCSV(t *testing.T) {
	read := func(f CSV, text string) ([]Series, error) { return f.parse(strings.NewReader(text), query(t, "delay")) }
	all, err := read(CSV{}, "time,value,error_bound,hour,day_type,access\n2026-01-05T03:00:00Z,1.5,0.1,7,holiday,umts\n1767589200,2,,,,wifi\n2026-01-06,,,,,umts\n2020-01-01,9,,,,umts\n")
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if a := all[0]; a.Name() != "access=umts" || len(a.Samples) != 1 || a.Samples[0].Bound != 0.1 || a.Samples[0].Hour != 7 || a.Samples[0].Kind != localday.Holiday {
		t.Errorf("%+v", a)
	}
	if b := all[1].Samples[0]; b.Hour != 5 || b.Value != 2 {
		t.Errorf("%+v", b)
	}
	report, err := read(CSV{Time: "from", Value: "delay_forward_p50_seconds"}, "path,from,outages,delay_forward_p50_seconds\nberlin,2026-01-05T00:00:00Z,0,0.02\nberlin,2026-01-06T00:00:00Z,1,0.03\n")
	if err != nil || len(report) != 1 || len(report[0].Samples) != 2 || report[0].Name() != "berlin" {
		t.Errorf("%+v, %v", report, err)
	}
	if marked, err := read(CSV{}, "\uFEFFtime,value\n2026-01-06,1\n"); err != nil || len(marked) != 1 {
		t.Errorf("with a byte order mark: %v, %v", marked, err)
	}
	for text, want := range map[string]string{
		"":                              "the header",
		"\xFF\xFEt\x00":                 "the text is UTF-16; save it as UTF-8",
		"at,value\n":                    `no column "time"; it has at, value`,
		"time,value\nyesterday,1\n":     `line 2: the time is "yesterday"`,
		"time,value\n2026-01-06,fast\n": `line 2: the value is "fast"`,
		"time,value\n2026-01-06,1,2\n":  "wrong number of fields",
		"time,value,error_bound\n1767589200,1,-2\n": "the error bound is",
		"time,value\n": "the file has no value",
		"time,value\n2025-01-06,1\n2025-03-06T07:00:00Z,1\n": "no row is from 2026-01-05 to 2026-02-14; the rows are from 2025-01-06 00:00 to 2025-03-06 07:00: set --from and --to",
	} {
		if _, err := read(CSV{}, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := (CSV{File: t.TempDir() + "/none"}).Read(context.Background(), query(t, "delay")); err == nil {
		t.Error("no file, no error")
	}
}

func FuzzCSV(f *testing.F) {
	f.Add("time,value,error_bound,hour,day_type,access\n2026-01-05T03:00:00Z,1.5,0.1,7,holiday,umts\n")
	f.Add("time,value\n1e300,NaN\n")
	m, _ := MeasureByName("delay")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := CSV{}.parse(strings.NewReader(text), Query{Measure: m, From: monday, To: monday.AddDate(1, 0, 0), Zone: time.UTC})
		for _, s := range all {
			for _, one := range s.Samples {
				if err != nil || one.Hour < 0 || one.Hour > 23 || one.Bound < 0 {
					t.Fatalf("%+v, %v", one, err)
				}
			}
		}
	})
}

// evening is a history with a fifth more in busy hours and a step.
func evening(days int) (s Series) {
	s.Labels = map[string]string{"path": "a", "direction": "forward"}
	for i := range 24 * days {
		one := history.At(monday.Add(time.Duration(i)*time.Hour), 0)
		one.Value = 0.02 * (1 + 0.01*math.Sin(float64(i*i))) // any small noise
		if one.Kind == localday.Weekday && one.Hour >= 18 && one.Hour < 22 {
			one.Value += 0.004
		}
		if i >= 24*days/2+7 {
			one.Value += 0.003
		}
		s.Samples = append(s.Samples, one)
	}
	return s
}

func TestLinesHaveAFigureAndAVerdictEach(t *testing.T) {
	m, _ := MeasureByName("delay")
	h := Analyze(evening(56), m, Options{Busy: [2]int{18, 22}, End: monday.AddDate(0, 0, 56), Zone: time.UTC})
	text := strings.Join(h.Lines("a forward", m), "\n")
	for _, want := range []string{
		"a forward, delay p50: median ", "n = 1344 on 56 days, 0 missing hours", "time of day: explains ", "differs by at least ", "weekdays against weekends and holidays: ",
		"last 7 days against the 7 days before: 23 ms and 23 ms", ": equal within 10 %", "busy hours (18..22 h) of weekdays against their other hours: ", "trend: ", "changed at 2026-02-02 07:00: from 20 ms to 23 ms (15 %)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, c := range Analyze(evening(56), m, Options{End: monday.AddDate(0, 0, 56), Zone: time.UTC}).Comparisons {
		if strings.Contains(c.Name, "busy") {
			t.Errorf("without busy hours: %s", c.Text)
		}
	}
}

// TestHoursWithoutAnUpperLimitLeaveNoVerdict: one hour in ten, the worst perhaps, has no quantile; one in thirty changes no rank by much.
func TestHoursWithoutAnUpperLimitLeaveNoVerdict(t *testing.T) {
	for each, unknown := range map[int]bool{10: true, 30: false} {
		all, err := Prometheus{prometheusWithout(t, each)}.Read(t.Context(), query(t, "delay"))
		if err != nil || len(all) != 1 || len(all[0].Withheld) != 40*24/each {
			t.Fatal(all, err)
		}
		m, _ := MeasureByName("delay")
		s := evening(56)
		withheld := func(one history.Sample) bool { return int(one.Time.Sub(monday)/time.Hour)%each == 0 }
		for _, one := range s.Samples {
			if withheld(one) {
				s.Withheld = append(s.Withheld, one)
			}
		}
		s.Samples = slices.DeleteFunc(s.Samples, withheld)
		h := Analyze(s, m, Options{Busy: [2]int{18, 22}, End: monday.AddDate(0, 0, 56), Zone: time.UTC})
		verdicts := []Verdict{h.HoursOfDay.Verdict, h.Trend.Verdict}
		for _, c := range append(h.Comparisons, Compare([][2]Side{{SideOf("a", []Series{s}), SideOf("b", []Series{evening(56)})}}, m, Options{})...) {
			verdicts = append(verdicts, c.Verdict)
		}
		if len(verdicts) != 6 {
			t.Fatalf("%d verdicts", len(verdicts))
		}
		for i, v := range verdicts {
			if cannot := v.Reason == string(history.ManyWithheld); cannot != unknown || cannot && (v.Outcome != string(history.Unknown) || !strings.Contains(v.Text, "too many hours")) {
				t.Errorf("one hour in %d: verdict %d is %+v", each, i, v)
			}
		}
	}
}

func TestPercent(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0523: "5.2", 0.05: "5", -0.0201: "-2", 0.199: "20", 0.00012: "0.01", 0.0012: "0.1", 1e-9: "0", -1e-9: "0", math.Inf(1): "?"} {
		if got := percent(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// Three equal values of a label, and one with a fifth more.
func TestPairsOfALabelAreCorrectedForTheirNumber(t *testing.T) {
	m, _ := MeasureByName("delay")
	var all []Series
	for i, access := range []string{"a", "b", "c", "d"} {
		s := evening(28)
		s.Labels = map[string]string{"access": access}
		for j := range s.Samples {
			s.Samples[j].Value *= 1 + 0.01*math.Sin(float64(j*(i+3)))
			if access == "d" {
				s.Samples[j].Value *= 1.2
			}
		}
		all = append(all, s)
	}
	found := Compare(ByLabel(all, "access"), m, Options{Zone: time.UTC})
	if len(found) != 6 {
		t.Fatalf("%d pairs", len(found))
	}
	for _, c := range found {
		want := history.Equal
		if strings.HasSuffix(c.Name, "access=d") {
			want = history.Differs
		}
		if c.Verdict.Outcome != string(want) || c.Adjusted == nil || *c.Adjusted < c.P || c.Pairs != 28*24 {
			t.Errorf("%s: %+v", c.Name, c)
		}
		if r := c.Corrected; r == nil || *r.Low >= *c.Relative.Low || *r.High <= *c.Relative.High || !strings.Contains(c.Text, ", for all 6 comparisons together "+percent(*r.Low)+"..") {
			t.Errorf("%s: corrected %+v of %+v, %s", c.Name, r, c.Relative, c.Text)
		}
		if c.Verdict.AtLeast != nil && *c.Verdict.AtLeast != max(*c.Corrected.Low, -*c.Corrected.High) {
			t.Errorf("%s: at least %v of %+v", c.Name, *c.Verdict.AtLeast, c.Corrected)
		}
	}
	if one := Compare(ByLabel(all[:2], "access"), m, Options{Zone: time.UTC}); len(one) != 1 || one[0].Corrected != nil || strings.Contains(one[0].Text, "together") {
		t.Errorf("one comparison: %+v", one)
	}
}

// Beyond ten years the number of days is a limit of the search.
func TestMoreDaysThanAreSearched(t *testing.T) {
	for days, want := range map[int]string{1: "needs about 1 more day", 3649: "needs about 3649 more days", history.MostDays: "needs more than 10 more years"} {
		if v := verdictOf(history.Verdict{Outcome: history.Unknown, Reason: history.FewDays, MoreDays: days}); v.Text != "cannot tell, "+want || v.MoreDays != days {
			t.Errorf("%+v, want %s", v, want)
		}
	}
}

func TestParseLabels(t *testing.T) {
	if l, err := ParseLabels(`access=umts, site="paris"`); err != nil || l["access"] != "umts" || l["site"] != "paris" {
		t.Error(l, err)
	}
	for _, text := range []string{"", "access", "=a", "access="} {
		if l, err := ParseLabels(text); err == nil {
			t.Errorf("%q: %v", text, l)
		}
	}
}

// store replies with paths of recorded series, of scraped ones, and with labels of paths, and never with a sample.
func store(t *testing.T, recorded, scraped, series string) Prometheus {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data := `{"resultType":"matrix","result":[]}`
		switch {
		case strings.HasSuffix(r.URL.Path, "/series"):
			data = "[" + series + "]"
		case strings.Contains(r.URL.Path, "/label/") && strings.Contains(r.FormValue("match[]"), "long"):
			data = "[" + recorded + "]"
		case strings.Contains(r.URL.Path, "/label/"):
			data = "[" + scraped + "]"
		}
		fmt.Fprintf(w, `{"status":"success","data":%s}`, data)
	}))
	t.Cleanup(s.Close)
	return Prometheus{&promapi.Server{URL: s.URL}}
}

func TestWhyThereIsNoHistory(t *testing.T) {
	const paths, infos = `"berlin","paris"`, `{"__name__":"oneway_path_labels_info","job":"oneway","instance":"i","path":"berlin","access":"umts"}`
	for _, c := range []struct {
		name, measure, recorded, scraped, series string
		labels                                   map[string]string
		want, not                                string
	}{
		{"a path with a mistake", "delay", paths, paths, infos, map[string]string{"path": "berlim"}, `has no path "berlim"; did you mean "berlin"?`, "rules"},
		{"another path", "delay", paths, "", infos, map[string]string{"path": "x"}, `has no path "x"; there are berlin, paris`, "rules"},
		{"no hour yet", "delay", `"paris"`, paths, infos, map[string]string{"path": "berlin"}, `of path "berlin": the recording rules write it once an hour`, "retention"},
		{"no rules", "delay", "", paths, infos, nil, "are they loaded", "retention"},
		{"no run", "throughput", "", paths, infos, map[string]string{"path": "berlin"}, "no run of the probe tcp completed", "retention"},
		{"another time", "delay", paths, paths, infos, map[string]string{"path": "berlin"}, "but none from 2026-01-05 to 2026-02-14; the time may be before its retention (--storage.tsdb.retention.time), or too few of the delays are known", "rules"},
		{"a label with a mistake", "delay", paths, paths, infos, map[string]string{"acess": "umts"}, `has the label "acess"; did you mean "access"?`, "rules"},
		{"a value with a mistake", "delay", paths, paths, infos, map[string]string{"access": "utms"}, `has access=utms (did you mean "umts"?)`, "rules"},
		{"a second store without the labels", "delay", paths, "", "", map[string]string{"access": "umts"}, "has no oneway_path_labels_info", "retention"},
		{"a quantile that is not recorded", "delay-p99", paths, paths, infos, nil, "Prometheus has no hourly delay p99: the recording rules record p50 and p95", "retention"},
		{"an empty store", "delay", "", "", "", nil, "is the agent one of its targets", "retention"},
	} {
		q := query(t, c.measure)
		q.Labels = c.labels
		_, err := store(t, c.recorded, c.scraped, c.series).Read(t.Context(), q)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: %v; want %q, without %q", c.name, err, c.want, c.not)
		}
	}
}

// What users may select is recorded, and documented with its series.
func TestMeasuresAreRecordedAndDocumented(t *testing.T) {
	text, err := os.ReadFile("../../doc/trends.md")
	if err != nil {
		t.Fatal(err)
	}
	series, ranks := map[string]bool{}, map[string]bool{}
	for _, f := range rules.Files() {
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				series[r.Name] = true
			}
		}
	}
	for _, r := range rules.DelayQuantiles1h.Rules { // LongDelayQuantiles has their labels
		for _, l := range r.Labels {
			ranks[fmt.Sprintf("%s=%q", l.Name, l.Value)] = true
		}
	}
	for _, m := range Measures() {
		if m.recorded == rules.LongDelayQuantiles.Name && !ranks[m.matcher] {
			t.Errorf("%s: no rule records {%s}, only %v", m.Name, m.matcher, ranks)
		}
		row := ""
		for line := range strings.SplitSeq(string(text), "\n") {
			if first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), "|"); strings.HasPrefix(line, "| ") && strings.Contains(first, "`"+m.Name+"`") {
				row = line
			}
		}
		if row == "" {
			t.Errorf("doc/trends.md has no row of --measure=%s", m.Name)
		}
		for _, name := range []string{m.recorded, m.whole, m.bound} {
			if name != "" && (!series[name] || !strings.Contains(row, "`"+name+"`")) {
				t.Errorf("%s: %s is recorded: %t; its row in doc/trends.md: %s", m.Name, name, series[name], row)
			}
		}
	}
}

func TestWhyThereAreNoPairs(t *testing.T) {
	all := []Series{{Labels: map[string]string{"path": "a", "direction": "forward", "site": "x"}}, {Labels: map[string]string{"path": "b", "direction": "reverse", "site": "x"}}}
	for label, want := range map[string]string{
		"acess": `no history has the label "acess"; labels with several values are path`,
		"site":  `all histories have the same value of the label "site"; labels with several values are path`,
		"path":  `no two histories of one direction have different values of the label "path"`,
	} {
		if err := NoPairs(all, label); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", label, err, want)
		}
	}
	if err := NoPairs(all[:1], "x"); !strings.Contains(err.Error(), "no label has several values") {
		t.Error(err)
	}
}

// A request that Ctrl-C ends is no fault of the server.
func TestAnInterruptionIsNoFaultOfTheServer(t *testing.T) {
	end := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer s.Close()
	defer close(end)
	for name, source := range map[string]Source{"Prometheus": Prometheus{&promapi.Server{URL: s.URL}}, "InfluxDB": InfluxDB{URL: s.URL}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("SIGINT")) })
		if _, err := source.Read(ctx, query(t, "delay")); err == nil || !strings.HasSuffix(err.Error(), ": stopped by SIGINT") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
