package historyreport

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/tests/testseed"
)

// rowOf is the row of delays, the last ones of them unknown.
func rowOf(delays []float64, unknown int) *sums {
	known := delays[:len(delays)-unknown]
	row := make([]*float64, len(rowFields()))
	set := func(c rowColumn, v float64) { row[c] = &v }
	sum := 0.0
	for _, d := range known {
		sum += d
	}
	set(rowValues, float64(len(known)))
	set(rowSum, sum)
	set(rowMin, slices.Min(known))
	set(rowMax, slices.Max(known))
	set(rowBound, 0.0001)
	set(rowReceived, float64(len(delays)))
	for i, b := range metric.Delay.Buckets {
		n := 0
		for _, d := range known {
			if d <= b {
				n++
			}
		}
		set(rowBuckets+rowColumn(i), float64(n))
	}
	s := newSums(len(rowFields()), nil)
	s.add(row)
	return s
}

// The limits of a quantile contain it, whatever the unknown delays are, and are narrow where most delays are near the lowest one.
func TestLimitsOfAQuantileHold(t *testing.T) {
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, seed))
	known, withheld, narrow := 0, 0, 0
	for range 7000 {
		base, spread := math.Exp(-7+7*r.Float64()), math.Exp(-10+8*r.Float64())
		delays := make([]float64, 1+r.IntN(200))
		for i := range delays {
			if delays[i] = base + spread*r.ExpFloat64(); r.IntN(20) == 0 {
				delays[i] += r.Float64() // some are late
			}
		}
		unknown := 0
		if r.IntN(2) == 0 {
			unknown = r.IntN(len(delays))
		}
		s := rowOf(delays, unknown)
		extremes := r.IntN(4) > 0
		if !extremes { // of an output that does not read each window
			s.columns[rowMin], s.columns[rowMax] = math.NaN(), math.NaN()
		}
		slices.Sort(delays)
		for _, rank := range []float64{0.5, 0.95, 0.99} {
			value, half, ok := s.quantile(rank, s.unknown())
			if !ok {
				withheld++
				if unknown == 0 && extremes {
					t.Fatalf("%v of %v is withheld, and all delays are known", rank, delays)
				}
				continue
			}
			known++
			truth := delays[int(math.Ceil(rank*float64(len(delays))))-1]
			if math.Abs(value-truth) > half+1e-9 {
				t.Fatalf("%v of %v is %v, and the row has %v +- %v", rank, delays, truth, value, half)
			}
			if rank == 0.5 && half < 0.1*truth {
				narrow++
			}
		}
	}
	if known < 5000 || withheld < 500 || narrow < 1000 {
		t.Errorf("%d limits, %d withheld, %d medians within 10 %%", known, withheld, narrow)
	}
}

// TestExtremesOfAPartLimitNothing: the second row is of an output that does not read each window.
func TestExtremesOfAPartLimitNothing(t *testing.T) {
	row := func(s *sums) (row []*float64) {
		for _, v := range s.columns {
			if row = append(row, nil); !math.IsNaN(v) {
				row[len(row)-1] = &v
			}
		}
		return row
	}
	fast, slow := make([]float64, 1000), make([]float64, 9000)
	for i := range fast {
		fast[i] = 0.055 + 0.0002*float64(i%10)
	}
	for i := range slow {
		slow[i] = 0.09 + 0.0008*float64(i%10)
	}
	all := slices.Sorted(slices.Values(slices.Concat(fast, slow)))
	a, b := rowOf(fast, 0), rowOf(slow, 0)
	b.columns[rowMin], b.columns[rowMax] = math.NaN(), math.NaN()
	for _, order := range [][2]*sums{{a, b}, {b, a}} {
		s := newSums(len(rowFields()), nil)
		s.add(row(order[0]))
		s.add(row(order[1]))
		for _, rank := range []float64{0.5, 0.95} {
			truth := all[int(math.Ceil(rank*float64(len(all))))-1]
			if value, half, ok := s.quantile(rank, 0); ok && math.Abs(value-truth) > half+1e-9 {
				t.Errorf("%v is %v, and the rows have %v +- %v", rank, truth, value, half)
			}
		}
	}
}

// Two rows of an hour are one: an agent restarted. Zones with quarters of an hour have hours of their own.
func TestRowsAreOfTheLocalHour(t *testing.T) {
	q := query(t, "delay")
	begin := time.Date(2026, 1, 31, 18, 15, 0, 0, time.UTC) // the first hour of February in Kathmandu
	q.To = begin.Add(2 * time.Hour)
	hours, months := influxHours{}, influxHours{}
	one := func(at time.Time, n float64) []*float64 {
		s := float64(at.Unix())
		return []*float64{&s, &n}
	}
	r := influxRow{Tags: map[string]string{"path": "p", "direction": "forward", "zone": "Asia/Kathmandu", "local_hour": "0", "day_type": "weekend"}, Values: [][]*float64{
		one(begin.Add(-time.Hour), 1), one(begin, 10), one(begin.Add(45*time.Minute), 100), one(begin.Add(time.Hour), 1000),
	}}
	hours.addRow(&r, &q, len(rowFields()), months)
	all := hours.sorted()
	if len(all) != 3 || all[1].sums.number(rowValues) != 110 || !all[1].end.Equal(begin.Add(time.Hour)) {
		t.Fatalf("%+v", all)
	}
	if s := all[1]; len(s.labels) != 2 || s.hour != "0" || s.kind != "weekend" {
		t.Errorf("%+v", s)
	}
	if m := months.sorted(); len(m) != 2 || m[0].month().Month != "2026-01" || m[1].month().Delays != 1110 {
		t.Errorf("%+v", m)
	}
}

// The hour that runs at the end of the query is no sample, and of no month.
func TestAnHourThatEndsAfterTheQueryIsLeftOut(t *testing.T) {
	begin, n := time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC), 1.0
	first, second := float64(begin.Unix()), float64(begin.Add(time.Hour).Unix())
	r := influxRow{Tags: map[string]string{"path": "p"}, Values: [][]*float64{{&first, &n}, {&second, &n}}}
	for after, want := range map[time.Duration]int{time.Hour - time.Second: 0, time.Hour: 1, time.Hour + 10*time.Minute: 1, 2 * time.Hour: 2} {
		q := query(t, "delay")
		q.To = begin.Add(after)
		hours, months := influxHours{}, influxHours{}
		hours.addRow(&r, &q, len(rowFields()), months)
		delays := 0.0
		for _, m := range months {
			delays += m.month().Delays
		}
		if len(hours) != want || delays != float64(want) {
			t.Errorf("%d hours and %v delays of months up to %s, want %d", len(hours), delays, after, want)
		}
	}
}

// TestAnHourOfTwoRequestsIsOneSample: the agent restarted within it, so that it has two rows.
func TestAnHourOfTwoRequestsIsOneSample(t *testing.T) {
	begin, n := time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC), 1.0
	q, hours := query(t, "delay"), influxHours{}
	q.To = begin.Add(2 * time.Hour)
	for _, minute := range []int{0, 40} {
		at := float64(begin.Add(time.Duration(minute) * time.Minute).Unix())
		hours.addRow(&influxRow{Tags: map[string]string{"path": "p"}, Values: [][]*float64{{&at, &n}}}, &q, len(rowFields()), nil)
		if early := hours.ended(begin.Add(30 * time.Minute)); len(early) > 0 {
			t.Errorf("%d hours are over within the hour", len(early))
		}
	}
	if got := hours.ended(begin.Add(time.Hour)); len(got) != 1 || got[0].sums.number(rowValues) != 2 || len(hours) > 0 {
		t.Errorf("%d hours, %d left, want one of both rows", len(got), len(hours))
	}
}

// Loss is over the outcomes, and over the packets sent where profile slim counts no received ones.
func TestLossOfARow(t *testing.T) {
	s := newSums(len(rowFields()), nil)
	row := make([]*float64, len(rowFields()))
	for c, v := range map[rowColumn]float64{rowSent: 100, rowLost: 1, rowUndecided: 3} {
		row[c] = &v
	}
	if s.add(row); s.outcomes() != 100 {
		t.Errorf("slim: %v", s.outcomes())
	}
	received := 90.0
	row[rowReceived] = &received
	s = newSums(len(rowFields()), nil)
	if s.add(row); s.outcomes() != 94 {
		t.Errorf("full: %v", s.outcomes())
	}
}

// Hours are read in requests of a week each, up to the end of the query. An hour that lies in two of them, and a month of several, is one.
func TestHoursOfSeveralRequestsAreJoined(t *testing.T) {
	q := query(t, "delay")
	q.Labels = map[string]string{metric.Path: "p"}
	q.From = time.Date(2026, 1, 5, 0, 30, 0, 0, time.UTC) // a request ends in the middle of an hour
	q.To = q.From.Add(2*rowsChunk + 48*time.Hour)
	type stored struct {
		at time.Time
		n  int
	}
	rows := []stored{
		{q.From.Add(time.Hour), 1},
		{q.From.Add(rowsChunk - 20*time.Minute), 10},
		{q.From.Add(rowsChunk + 10*time.Minute), 100},
		{q.From.Add(rowsChunk + 24*time.Hour), 1000},
		{q.From.Add(2*rowsChunk + 24*time.Hour), 10_000},
		{q.To.Add(time.Hour), 100_000},
	}
	var asked [][2]time.Time
	limits := regexp.MustCompile(`time >= (\d+)s AND time < (\d+)s`)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := r.FormValue("q")
		at := limits.FindStringSubmatch(text)
		if at == nil {
			t.Errorf("no time in %s", text)
			return
		}
		instant := func(text string) time.Time {
			seconds, _ := strconv.ParseInt(text, 10, 64) // of digits
			return time.Unix(seconds, 0)
		}
		from, to := instant(at[1]), instant(at[2])
		asked = append(asked, [2]time.Time{from, to})
		var values []string
		for _, one := range rows {
			if !one.at.Before(from) && one.at.Before(to) {
				row := slices.Repeat([]string{"null"}, len(rowFields())+1)
				row[0], row[1+rowValues], row[1+rowSum] = fmt.Sprint(one.at.Unix()), fmt.Sprint(one.n), fmt.Sprint(float64(one.n)*0.02)
				row[1+rowMin], row[1+rowMax], row[1+rowBound] = "0.02", "0.02", "0.001"
				values = append(values, "["+strings.Join(row, ",")+"]")
			}
		}
		fmt.Fprintf(w, `{"results":[{"series":[{"name":"oneway_hour","tags":{"path":"p","direction":"forward"},"values":[%s]}]}]}`, strings.Join(values, ","))
	}))
	t.Cleanup(s.Close)
	all, err := InfluxDB{URL: s.URL, Database: "oneway"}.hours(t.Context(), q, "long")
	if err != nil || len(all) != 1 {
		t.Fatalf("%d histories, %v", len(all), err)
	}
	if len(asked) != 3 || !asked[0][0].Equal(q.From) || !asked[1][0].Equal(asked[0][1]) || !asked[2][0].Equal(asked[1][1]) || !asked[2][1].Equal(q.To) {
		t.Errorf("requests %v", asked)
	}
	for _, one := range all {
		if len(one.Samples) != 4 { // of five rows two are of one hour
			t.Errorf("%d samples, want 4: %+v", len(one.Samples), one.Samples)
		}
		if len(one.Months) != 1 || one.Months[0].Delays != 11_111 {
			t.Errorf("months %+v", one.Months)
		}
	}
}

// Rows whose delays are known of 93 in 100 packets have a median, and no p95.
func TestRowsWithoutAQuantileAreNamed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.FormValue("q"), `"long"."oneway_hour"`) {
			fmt.Fprint(w, `{"results":[{}]}`)
			return
		}
		row := slices.Repeat([]string{"null"}, len(rowFields())+1)
		row[0], row[1+rowSent], row[1+rowReceived], row[1+rowLost] = fmt.Sprint(monday.Unix()), "100", "100", "0"
		row[1+rowValues], row[1+rowSum], row[1+rowMin], row[1+rowMax], row[1+rowBound] = "93", "1.86", "0.02", "0.02", "0.001"
		fmt.Fprintf(w, `{"results":[{"series":[{"name":"oneway_hour","tags":{"path":"p","direction":"forward"},"values":[[%s]]}]}]}`, strings.Join(row, ","))
	}))
	t.Cleanup(s.Close)
	read := func(measure string) error {
		q := query(t, measure)
		q.Labels, q.To = map[string]string{metric.Path: "p"}, monday.Add(24*time.Hour)
		_, err := InfluxDB{URL: s.URL, Database: "oneway"}.Read(t.Context(), q)
		return err
	}
	if err := read("delay"); err != nil {
		t.Error(err)
	}
	want := ` has rows of hours (oneway_hour) with path=p in the database "oneway" from 2026-01-05 to 2026-01-06, but none with a delay p95: too few of the delays are known`
	if err := read("delay-p95"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--measure=delay needs half of them") {
		t.Errorf("%v, want %s", err, want)
	}
}
