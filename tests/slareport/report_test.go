package slareport

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the host may lack a zone database

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/serve/promapi"
	"oneway.example/exporter/serve/slareport"
	"oneway.example/tests/promserver"
)

// serve runs a Prometheus with the history.
func serve(t *testing.T, all []minute) *promapi.Server {
	t.Helper()
	return serveText(t, func(w io.Writer) { openMetrics(w, all) })
}

// serveText runs a Prometheus with the samples of OpenMetrics text.
func serveText(t *testing.T, text func(io.Writer)) *promapi.Server {
	t.Helper()
	program, data := promserver.Debian(t), filepath.Join(t.TempDir(), "data")
	store(t, data, text)
	s := promserver.Start(t, promserver.Options{Program: program, Data: data, Args: []string{"--storage.tsdb.retention.time=100y"}})
	return &promapi.Server{URL: s.URL}
}

// exact are the figures of a period by the history.
type exact struct {
	measured, up, longest time.Duration
	outages               int
	sent, lost            [2]float64
	trips, withheld, low  float64
	delays                [2][]float64
}

func figures(all []minute, from, to time.Time) (x exact) {
	outage := time.Duration(0)
	for _, m := range all {
		if !m.at.After(from) || m.at.After(to) || !m.scraped {
			continue
		}
		x.measured += scrape
		if m.up {
			x.up += scrape
			outage = 0
		} else {
			if outage == 0 {
				x.outages++
			}
			outage += scrape
			x.longest = max(x.longest, outage)
		}
		for d := range m.sent {
			x.sent[d] += float64(m.sent[d])
			x.lost[d] += float64(m.lost[d])
			x.delays[d] = append(x.delays[d], m.delays[d]...)
		}
		x.trips, x.withheld, x.low = x.trips+float64(m.trips), x.withheld+float64(m.withheld), x.low+float64(m.low)
	}
	for d := range x.delays {
		slices.Sort(x.delays[d])
	}
	return x
}

// near fails unless a share is that of the history. What was counted between the last scrape before a restart and the restart is in no
// sample, nor is the first value of a series that begins: a minute of each, of at least half a day here.
func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 0.0002+0.005*want {
		t.Errorf("%s: %s, want %v", what, shown(got), want)
	}
}

func shown(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprint(*v)
}

func TestReportHasTheFiguresOfTheHistory(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	all := history(zone)
	s := serve(t, all)
	from, to := time.Date(2026, time.October, 24, 0, 0, 0, 0, zone), time.Date(2026, time.November, 2, 12, 0, 0, 0, zone)
	now := to.AddDate(0, 1, 0)
	for by, want := range map[slareport.By][]string{
		slareport.Month: {"2026-10-24T00:00:00+02:00 true", "2026-11-01T00:00:00+01:00 true"},
		slareport.Week:  {"2026-10-24T00:00:00+02:00 true", "2026-10-26T00:00:00+01:00 false", "2026-11-02T00:00:00+01:00 true"},
		slareport.Day: {
			"2026-10-24T00:00:00+02:00 false", "2026-10-25T00:00:00+02:00 false", "2026-10-26T00:00:00+01:00 false", "2026-10-27T00:00:00+01:00 false",
			"2026-10-28T00:00:00+01:00 false", "2026-10-29T00:00:00+01:00 false", "2026-10-30T00:00:00+01:00 false", "2026-10-31T00:00:00+01:00 false",
			"2026-11-01T00:00:00+01:00 false", "2026-11-02T00:00:00+01:00 true",
		},
	} {
		t.Run(string(by), func(t *testing.T) {
			rows, err := slareport.Make(t.Context(), s, slareport.Options{Path: path, From: from, To: to, By: by, Interval: scrape}, now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			counted := map[bool]int{}
			for _, r := range rows {
				word := " false"
				if r.Partial {
					word = " true"
				}
				got = append(got, r.From.Format(time.RFC3339)+word)
				compare(t, &r, figures(all, r.From, r.To), counted)
			}
			if !slices.Equal(got, want) {
				t.Errorf("periods %q, want %q", got, want)
			}
			if counted[true] == 0 || by == slareport.Day && counted[false] == 0 {
				t.Errorf("%d quantiles have an upper limit, %d have none", counted[true], counted[false])
			}
		})
	}
}

// compare compares a row with the history, and counts its quantiles by whether the unknown delays leave them an upper limit.
func compare(t *testing.T, r *slareport.Row, x exact, counted map[bool]int) {
	t.Helper()
	name := r.From.Format(time.DateOnly)
	if r.Measured != x.measured || r.Up != x.up || r.NoData != r.To.Sub(r.From)-x.measured {
		t.Errorf("%s: measured %v, up %v, without data %v; want %v, %v of %v", name, r.Measured, r.Up, r.NoData, x.measured, x.up, r.To.Sub(r.From))
	}
	if r.Outages != x.outages || r.Longest != x.longest {
		t.Errorf("%s: %d outages of at most %v, want %d of %v", name, r.Outages, r.Longest, x.outages, x.longest)
	}
	near(t, name+": availability", r.Availability, x.up.Seconds()/x.measured.Seconds())
	near(t, name+": loss of round trips", r.RoundTrip, x.trips/x.sent[0])
	near(t, name+": withheld", r.Ways[0].Withheld, x.withheld/(x.withheld+float64(len(x.delays[0]))))
	near(t, name+": of low confidence", r.Ways[0].LowConfidence, x.low/float64(len(x.delays[0])))
	for d, w := range r.Ways {
		way := name + ", " + sample.Direction(d).String()
		near(t, way+": loss", w.Loss, x.lost[d]/x.sent[d])
		if of := float64(len(x.delays[d])); math.Abs(w.Delays-of) > 0.005*of {
			t.Errorf("%s: %v delays, want %v", way, w.Delays, of)
		}
		if most := slices.Max(x.delays[d]); w.Max == nil || *w.Max != most {
			t.Errorf("%s: the largest delay is %s, want %v", way, shown(w.Max), most)
		}
		for rank, q := range map[float64]*slareport.Quantile{0.5: w.P50, 0.95: w.P95, 0.99: w.P99} {
			want := x.delays[d][int(math.Ceil(rank*float64(len(x.delays[d]))))-1]
			n, arrived := float64(len(x.delays[d])), x.sent[d]-x.lost[d]
			// Two buckets are a factor of at most 10. Near the border an unknown delay may or may not be the quantile.
			bounded, unbounded := rank*arrived < 0.999*n, rank*arrived > 1.001*n
			if q == nil || want < q.Lower || want > q.Upper || q.Value < q.Lower || q.Value > q.Upper ||
				bounded && q.Upper > 10*q.Lower || unbounded && !math.IsInf(q.Upper, 1) {
				t.Errorf("%s: quantile %v is %+v, want %v; %v of %v that arrived have a delay", way, rank, q, want, n, arrived)
			}
			counted[bounded]++
		}
	}
}

func TestReportSaysWhyThereIsNone(t *testing.T) {
	zone := time.UTC
	s := serve(t, history(zone)[:60])
	day := func(month time.Month, d int) time.Time { return time.Date(2026, month, d, 0, 0, 0, 0, zone) }
	now := day(time.December, 1)
	for name, c := range map[string]struct {
		change func(*slareport.Options, *promapi.Server)
		want   string
	}{
		"no such path": {func(o *slareport.Options, _ *promapi.Server) { o.Path = "berlim" }, `has no path "berlim"`},
		"no data":      {func(o *slareport.Options, _ *promapi.Server) { o.From, o.To = day(time.June, 1), day(time.July, 1) }, "retention"},
		"future": {func(o *slareport.Options, _ *promapi.Server) {
			o.From, o.To = day(time.December, 2), day(time.December, 3)
		}, "in the future"},
		"not reached":   {func(_ *slareport.Options, s *promapi.Server) { s.URL = "http://127.0.0.1:1" }, "connection refused; --prometheus.url"},
		"not its API":   {func(_ *slareport.Options, s *promapi.Server) { s.URL += "/graph" }, "not from a Prometheus server"},
		"another probe": {func(o *slareport.Options, _ *promapi.Server) { o.Probe = "other" }, "with the given probe"},
	} {
		o, server := slareport.Options{Path: path, From: day(time.October, 20), To: day(time.October, 30), By: slareport.Day, Interval: scrape}, *s
		c.change(&o, &server)
		_, err := slareport.Make(t.Context(), &server, o, now)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Each query of the documentation gives a value over the history.
func TestQueriesOfTheDocumentationGiveValues(t *testing.T) {
	zone := time.UTC
	s := serve(t, history(zone))
	text, err := os.ReadFile("../../exporter/doc/report.md")
	if err != nil {
		t.Fatal(err)
	}
	packets := rules.Packets{Sum: true, Series: func(d *metric.Desc, matchers ...string) string {
		return d.Name + "{" + strings.Join(append([]string{`path="$path"`}, matchers...), ",") + "}[1d]"
	}}
	for _, query := range []string{packets.RoundTrips(), packets.Outcomes()} {
		if !strings.Contains(string(text), strings.ReplaceAll(query, "\n", "\n  ")) {
			t.Errorf("the documentation does not have the query of the report:\n%s", query)
		}
	}
	blocks := strings.Split(string(text), "```promql\n")[1:]
	for _, b := range blocks {
		query, _, _ := strings.Cut(b, "```")
		r, err := http.PostForm(s.URL+"/api/v1/query", url.Values{
			"query": {strings.ReplaceAll(query, "$path", path)}, "time": {time.Date(2026, time.October, 29, 0, 0, 0, 0, zone).Format(time.RFC3339)},
		})
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Error string
			Data  struct{ Result []any }
		}
		err = json.NewDecoder(r.Body).Decode(&body)
		r.Body.Close()
		if err != nil || body.Error != "" || len(body.Data.Result) == 0 {
			t.Errorf("%s: %v %s, %d values", query, err, body.Error, len(body.Data.Result))
		}
	}
	if len(blocks) < 8 {
		t.Errorf("%d queries, want 8 or more", len(blocks))
	}
}
