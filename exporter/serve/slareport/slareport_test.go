package slareport

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	_ "time/tzdata" // the host may lack a zone database

	"github.com/prometheus/common/model"

	"oneway.example/exporter/serve/promapi"
)

func TestNativeHistogramOfTheAPIIsAdded(t *testing.T) {
	const text = `{"metric":{"direction":"forward"},"histogram":[1700000000.5,{"count":"10","sum":"1","buckets":[[0,"0.01","0.012","6"],[0,"0.012","0.0144","4"]]}]}`
	var s model.Sample
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	h := histogram{}
	for range 2 {
		h.addNative(s.Histogram)
	}
	if q := h.quantile(0.95, 0); h.count() != 20 || q == nil || q.Lower != 0.012 || q.Upper != 0.0144 || q.Value < 0.0132 || q.Value > 0.0144 {
		t.Errorf("%v: %+v", h, q)
	}
	var wrong model.Sample
	if err := json.Unmarshal([]byte(`{"histogram":[1,{"buckets":[[0,"x","1","1"]]}]}`), &wrong); err == nil {
		t.Error("a limit that is no number was accepted")
	}
}

func TestQuantileOfClassicBucketsHasTheLimitsOfItsBucket(t *testing.T) {
	h := histogram{}
	h.addClassic(map[string]float64{"0.001": 10, "0.02": 60, "0.05": 98, "+Inf": 100})
	for rank, want := range map[float64]Quantile{
		0.05: {0.0005, math.Inf(-1), 0.001}, 0.5: {0.0162, 0.001, 0.02}, 0.95: {0.02 + 0.03*35/38, 0.02, 0.05}, 0.99: {0.05, 0.05, math.Inf(1)},
	} {
		q := h.quantile(rank, 0)
		if q == nil || q.Lower != want.Lower || q.Upper != want.Upper || math.Abs(q.Value-want.Value) > 1e-12 {
			t.Errorf("%v: %+v, want %+v", rank, q, want)
		}
	}
	if q := (histogram{}).quantile(0.5, 0); q != nil {
		t.Errorf("without values: %+v", q)
	}
}

// Half of the month with wide buckets, half with narrow ones: all delays of the wide one may be at its lower or at its upper limit.
func TestQuantileOfOverlappingBucketsIsWithinItsLimits(t *testing.T) {
	h := histogram{}
	h.add(bucket{0.02, 0.05, 100})
	h.add(bucket{0.045, 0.049, 100})
	for _, c := range []struct{ rank, least, most float64 }{{0.25, 0.02, 0.049}, {0.5, 0.02, 0.049}, {0.75, 0.045, 0.05}, {0.95, 0.045, 0.05}} {
		q := h.quantile(c.rank, 0)
		if q == nil || q.Lower != c.least || q.Upper != c.most || q.Value < q.Lower || q.Value > q.Upper {
			t.Errorf("%v: %+v, want from %v to %v", c.rank, q, c.least, c.most)
		}
	}
}

func TestPeriodsFollowTheZone(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	hours := func(by By, from, to string) (all []float64) {
		begin, err1 := ParseTime(from, zone)
		end, err2 := ParseTime(to, zone)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for _, p := range by.periods(begin, end) {
			all = append(all, p.To.Sub(p.From).Hours())
			if whole := p.From.Equal(by.begin(p.From)) && p.To.Equal(by.next(by.begin(p.From))); whole == p.Partial {
				t.Errorf("%v to %v: partial is %v", p.From, p.To, p.Partial)
			}
		}
		return all
	}
	for _, c := range []struct {
		by       By
		from, to string
		want     []float64
	}{
		{Day, "2026-10-24", "2026-10-27", []float64{24, 25, 24}},
		{Day, "2026-03-29", "2026-03-30", []float64{23}},
		{Month, "2026-10-01", "2026-12-01", []float64{31*24 + 1, 30 * 24}},
		{Week, "2026-10-21", "2026-10-28T12:00:00+01:00", []float64{5*24 + 1, 60}},
	} {
		got := hours(c.by, c.from, c.to)
		if len(got) != len(c.want) {
			t.Errorf("%+v: %v", c, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%+v: %v", c, got)
			}
		}
	}
	if _, err := ParseTime("yesterday", zone); err == nil || !strings.Contains(err.Error(), "must be a date") {
		t.Error(err)
	}
	if from, to := PreviousMonth(time.Date(2026, time.March, 31, 12, 0, 0, 0, zone)); from.Format(time.DateOnly) != "2026-02-01" || to.Format(time.DateOnly) != "2026-03-01" {
		t.Errorf("%v to %v", from, to)
	}
}

// Daylight saving time begins or ends at midnight in these zones: a day begins at its first instant, at 01:00 where there is no midnight.
func TestPeriodsBeginAtTheFirstInstantOfTheirDate(t *testing.T) {
	for _, c := range []struct{ zone, from, to string }{
		{"Africa/Cairo", "2026-04-20", "2026-05-10"},
		{"Africa/Cairo", "2026-10-20", "2026-11-10"},
		{"America/Santiago", "2026-09-01", "2026-10-01"},
		{"America/Santiago", "2026-03-28", "2026-04-12"},
		{"Asia/Beirut", "2026-03-25", "2026-04-03"},
		{"America/Havana", "2026-03-05", "2026-03-12"},
		{"America/Havana", "2026-10-28", "2026-11-05"},
		{"America/Asuncion", "2023-09-28", "2023-10-05"},
		{"Asia/Amman", "2021-03-20", "2021-04-05"},
		{"Asia/Gaza", "2021-03-20", "2021-04-05"},
		{"America/Sao_Paulo", "2018-11-01", "2018-11-10"},
		{"Atlantic/Azores", "2026-03-25", "2026-04-02"},
		{"Europe/Berlin", "2026-10-20", "2026-11-01"},
		{"Pacific/Apia", "2011-12-25", "2012-01-03"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, err1 := ParseTime(c.from, zone)
		to, err2 := ParseTime(c.to, zone)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for _, by := range []By{Day, Week, Month} {
			end := from
			for _, p := range by.periods(from, to) {
				before := p.From.Add(-time.Second)
				if !p.From.Equal(end) || before.Format(time.DateOnly) == p.From.Format(time.DateOnly) || p.From.Hour() > 1 {
					t.Errorf("%s by %s: a period begins at %s, a second after %s", c.zone, by, p.From.Format(time.RFC3339), before.Format(time.RFC3339))
				}
				end = p.To
			}
			if !end.Equal(to) {
				t.Errorf("%s by %s: ends at %v, want %v", c.zone, by, end, to)
			}
		}
	}
}

func TestMonthsFromAMidnightThatDoesNotExist(t *testing.T) {
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{
		"2026-09-06": "2026-10-06T00:00:00-03:00", "2026-08-06": "2026-09-06T01:00:00-03:00", "2026-08-06T12:00:00-04:00": "2026-09-06T12:00:00-03:00",
	} {
		begin, err := ParseTime(from, zone)
		if got := AddMonths(begin, 1).Format(time.RFC3339); err != nil || got != want {
			t.Errorf("a month from %s is %s, want %s (%v)", from, got, want, err)
		}
	}
}

func TestUnknownValuesAreEmptyCells(t *testing.T) {
	var out bytes.Buffer
	at := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)
	source := Source{Path: "berlin", Probe: "stamp", Instance: "a:9862", Labels: map[string]string{"site": "b", "region": "eu"}}
	if err := WriteCSV(&out, []Row{{Source: source, Period: Period{From: at, To: at.AddDate(0, 1, 0)}, NoData: 31 * 24 * time.Hour}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[0], "path,probe,instance,target,site,labels,from,to,partial,period_seconds,measured_seconds,no_data_seconds,load_test_seconds,maintenance_seconds,up_seconds,availability_ratio,") ||
		!strings.Contains(lines[0], ",delay_forward_p95_seconds,delay_forward_p95_lower_seconds,delay_forward_p95_upper_seconds,") {
		t.Errorf("columns %s", lines[0])
	}
	if !strings.HasPrefix(lines[1], `berlin,stamp,a:9862,,b,"region=eu,site=b",2026-10-01T00:00:00Z,2026-11-01T00:00:00Z,false,2678400,0,2678400,0,0,0,,0,0,,`) || strings.Count(lines[0], ",") != strings.Count(lines[1], ",")-1 {
		t.Errorf("row %s", lines[1])
	}
}

func TestMakeRefusesATimeInTheFuture(t *testing.T) {
	now := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)
	if _, err := Make(context.Background(), &promapi.Server{}, Options{From: now.Add(time.Hour), To: now.Add(2 * time.Hour)}, now); err == nil || !strings.Contains(err.Error(), "in the future") {
		t.Error(err)
	}
}

// The server replies when so many queries have arrived: a report that asks one after the other never ends.
func TestPathsAreAskedAtTheSameTime(t *testing.T) {
	const paths = 40
	var now, most atomic.Int64
	several := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "series"):
			var all []string
			for i := range paths {
				all = append(all, fmt.Sprintf(`{"path":"p%02d","probe":"stamp","instance":"a"}`, i))
			}
			fmt.Fprintf(w, `{"status":"success","data":[%s]}`, strings.Join(all, ","))
			return
		case n == promapi.Concurrent:
			select {
			case <-several:
			default:
				close(several)
			}
		}
		<-several
		data := `{"result":[]}`
		if strings.HasSuffix(r.URL.Path, "query_range") {
			data = `{"result":[{"values":[[1,"1"]]}]}`
		}
		fmt.Fprintf(w, `{"status":"success","data":%s}`, data)
	})
	from := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)
	rows, err := Make(t.Context(), &promapi.Server{URL: url}, Options{From: from, To: from.AddDate(0, 0, 2), By: Day, Interval: time.Hour}, from.AddDate(0, 1, 0))
	if err != nil || len(rows) != 2*paths {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, r := range rows {
		if want := fmt.Sprintf("p%02d", i/2); r.Path != want || r.From.Day() != 1+i%2 {
			t.Errorf("row %d: %s from %v, want %s, by day", i, r.Path, r.From, want)
		}
	}
	if most.Load() > promapi.Concurrent {
		t.Errorf("%d queries at a time, want at most %d", most.Load(), promapi.Concurrent)
	}
}

// Whatever the unknown delays are, the quantile of all is within the limits.
func TestLimitsOfAQuantileHoldForUnknownDelays(t *testing.T) {
	h := histogram{}
	for i := range 100 {
		h.add(bucket{float64(i), float64(i + 1), 10})
	}
	for name, c := range map[string]struct{ rank, unknown, lower, upper float64 }{
		"none":                             {0.5, 0, 49, 50},
		"a tenth of 1111":                  {0.5, 111, 44, 56},
		"p99, fewer than a hundredth":      {0.99, 5, 98, 100},
		"p99, a hundredth":                 {0.99, 11, 98, math.Inf(1)},
		"the median, as many as the known": {0.5, 1000, math.Inf(-1), 100},
		"the median, more":                 {0.5, 1001, math.Inf(-1), math.Inf(1)},
	} {
		if q := h.quantile(c.rank, c.unknown); q.Lower != c.lower || q.Upper != c.upper || q.Value < 100*c.rank-1 || q.Value > 100*c.rank {
			t.Errorf("%s: %+v, want %v to %v", name, q, c.lower, c.upper)
		}
	}
}
