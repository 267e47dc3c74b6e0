package hours

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/output/point"
)

// agent is a made agent with one path, whose counters and buckets grow by 10 packets in each 10 s; a tenth of them is lost.
type agent struct {
	zone     string
	location *time.Location
	holiday  bool
	sent     int64
	up       float64
}

const interval = 10 * time.Second

// series emits the points of an instant.
func (a *agent) series(at time.Time, emit func(*point.Point)) {
	_, offset := at.In(a.location).Zone()
	holiday := 0.0
	if a.holiday {
		holiday = 1
	}
	path := []point.Tag{{Key: "path", Value: "p"}, {Key: "probe", Value: "stamp"}}
	forward := append([]point.Tag{{Key: "direction", Value: "forward"}}, path...)
	bucket := func(le string, n int64) point.Point {
		return point.Point{Measurement: "oneway_delay_seconds_bucket", Tags: []point.Tag{forward[0], {Key: "le", Value: le}, path[0], path[1]}, Fields: point.Int(nil, "delay_seconds_bucket", n)}
	}
	for _, p := range []point.Point{
		{Measurement: "oneway_probe", Tags: path, Fields: point.Float(nil, "probe_up", a.up)},
		{Measurement: "oneway_packets", Tags: forward, Fields: point.Int(point.Int(nil, "packets_sent_total", a.sent), "packets_lost_total", a.sent/10)},
		{Measurement: "oneway_delay", Tags: forward, Fields: point.Float(point.Float(point.Int(nil, "delay_seconds_count", a.sent*9/10), "delay_min_seconds", 0.01), "delay_error_bound_seconds", float64(a.sent)*1e-9)},
		bucket("0.02", a.sent/2), bucket("+Inf", a.sent*9/10),
		{Measurement: "oneway_agent_calendar", Tags: []point.Tag{{Key: "zone", Value: a.zone}}, Fields: point.Float(point.Float(nil, "utc_offset_seconds", float64(offset)), "holiday", holiday)},
	} {
		p.At = instant.FromTime(at)
		emit(&p)
	}
}

// stored are the rows as a store has them: the last one of each time and tag set.
type stored map[string]map[string]float64

func (s stored) take(p *point.Point) {
	key := p.At.Time().Format(time.RFC3339) + " " + p.Measurement
	for _, t := range p.Tags {
		key += " " + t.Value
	}
	s[key] = map[string]float64{}
	for _, f := range p.Fields {
		s[key][f.Key] = numberOf(&f)
	}
}

// sum adds a field of the rows of a measurement.
func (s stored) sum(measurement, field string) (n float64) {
	for key, row := range s {
		if strings.Contains(key, " "+measurement+" ") {
			n += row[field]
		}
	}
	return n
}

// run reads the agent from a time until before another one.
func run(h *Hours, a *agent, from, to time.Time) {
	for at := from; !at.After(to); at = at.Add(interval) {
		a.sent += 10
		h.Begin(instant.FromTime(at))
		a.series(at, h.Add)
		h.End()
	}
}

func newAgent(t *testing.T, zone string) *agent {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return &agent{zone: zone, location: location, up: 1}
}

func rowsOf(all stored, measurement string) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if strings.Contains(key, " "+measurement+" ") {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestAnHourIsOneRowWithItsLocalHour(t *testing.T) {
	all := stored{}
	h, a := New(interval, all.take), newAgent(t, "Asia/Kathmandu") // UTC+05:45
	begin := time.Date(2026, 11, 27, 10, 15, 0, 0, time.UTC)
	run(h, a, begin, begin.Add(3*time.Hour+10*time.Second))
	want := []string{
		"2026-11-27T10:15:00Z oneway_hour weekday forward 16 p stamp Asia/Kathmandu",
		"2026-11-27T11:15:00Z oneway_hour weekday forward 17 p stamp Asia/Kathmandu",
		"2026-11-27T12:15:00Z oneway_hour weekday forward 18 p stamp Asia/Kathmandu",
	}
	if got := rowsOf(all, "oneway_hour"); !slices.Equal(got, want) {
		t.Fatalf("rows %q, want %q", got, want)
	}
	for _, key := range want {
		row := all[key]
		if row["packets_sent"] != 3600 || row["packets_lost"] != 360 || row["delays"] != 3240 || row["delays_le_0_02"] != 1800 || row["delay_min_seconds"] != 0.01 {
			t.Errorf("%s: %v", key, row)
		}
	}
	// The boundary's reading belongs to the hour before it.
	if got, wanted := all[want[0]]["delay_error_bound_seconds"], 3610e-9; got != wanted {
		t.Errorf("largest bound %v, want %v", got, wanted)
	}
	if up, measured := all.sum("oneway_hour_round_trip", "up_minutes"), all.sum("oneway_hour_round_trip", "measured_minutes"); up != 180 || measured != 180 {
		t.Errorf("%v of %v minutes up, want 180 of 180", up, measured)
	}
}

// Extremes are of the last window: readings that leave out windows would have extremes of some packets only.
func TestRowsWithoutEachWindowHaveNoExtremes(t *testing.T) {
	for between, want := range map[time.Duration]bool{interval: true, interval + time.Second: false, time.Minute: false} {
		all := stored{}
		h, a := New(between, all.take), newAgent(t, "UTC")
		begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
		run(h, a, begin, begin.Add(time.Minute))
		for _, key := range rowsOf(all, "oneway_hour") {
			row := all[key]
			_, has := row["delay_min_seconds"]
			if _, bound := row["delay_error_bound_seconds"]; has != want || !bound || row["delays"] == 0 {
				t.Errorf("each %s: %v, want extremes: %v", between, row, want)
			}
		}
	}
}

// A restart loses nothing but what was counted before the first reading of the new process; the rest of the hour is a row of its own.
func TestRestartIsASecondRowOfTheHour(t *testing.T) {
	all := stored{}
	a := newAgent(t, "UTC")
	begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	run(New(interval, all.take), a, begin, begin.Add(20*time.Minute)) // killed: no Flush
	a.sent = 0
	h := New(interval, all.take)
	run(h, a, begin.Add(31*time.Minute), begin.Add(50*time.Minute+20*time.Second))
	h.Flush()
	want := []string{"2026-11-27T10:00:00Z oneway_hour weekday forward 10 p stamp UTC", "2026-11-27T10:31:00Z oneway_hour weekday forward 10 p stamp UTC"}
	if got := rowsOf(all, "oneway_hour"); !slices.Equal(got, want) {
		t.Fatalf("rows %q, want %q", got, want)
	}
	if a, b := all[want[0]]["packets_sent"], all[want[1]]["packets_sent"]; a != 1200 || b != 1160 {
		t.Errorf("%v and %v packets, want 1200 and 1160", a, b)
	}
}

// The counters of one path begin again (a reload), and another path is added.
func TestCounterThatBeginsAgainCountsFromZero(t *testing.T) {
	all := stored{}
	h, a := New(interval, all.take), newAgent(t, "UTC")
	begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	run(h, a, begin, begin.Add(30*time.Minute))
	a.sent = 0
	run(h, a, begin.Add(30*time.Minute+10*time.Second), begin.Add(time.Hour))
	if got := all.sum("oneway_hour", "packets_sent"); got != 3600 {
		t.Errorf("%v packets, want 3600", got)
	}
}

func TestDaysOfDaylightSavingHaveTheirHours(t *testing.T) {
	for day, want := range map[string]int{"2026-03-29": 23, "2026-10-25": 25, "2026-10-24": 24} {
		all := stored{}
		h, a := New(interval, all.take), newAgent(t, "Europe/Berlin")
		begin, err := time.ParseInLocation(time.DateOnly, day, a.location)
		if err != nil {
			t.Fatal(err)
		}
		run(h, a, begin, begin.AddDate(0, 0, 1))
		rows := rowsOf(all, "oneway_hour")
		if len(rows) != want || all.sum("oneway_hour", "packets_sent") != float64(3600*want) {
			t.Errorf("%s: %d rows, want %d, with %v packets", day, len(rows), want, all.sum("oneway_hour", "packets_sent"))
		}
		for _, key := range rows {
			at, _, _ := strings.Cut(key, " ")
			begin, err := time.Parse(time.RFC3339, at)
			local := begin.In(a.location)
			if err != nil || !strings.Contains(key, fmt.Sprintf(" weekend forward %d p", local.Hour())) {
				t.Errorf("%s, want the hour %d", key, local.Hour())
			}
		}
	}
}

// Rows of a clock that is stepped back, in the same hour and over its begin, are beside the others: nothing is replaced.
func TestClockThatIsSteppedBackReplacesNoRow(t *testing.T) {
	for _, back := range []time.Duration{10 * time.Minute, 40 * time.Minute, 90 * time.Minute} {
		all := stored{}
		h, a := New(interval, all.take), newAgent(t, "UTC")
		begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
		run(h, a, begin, begin.Add(time.Hour+30*time.Minute))
		run(h, a, begin.Add(time.Hour+30*time.Minute-back+time.Second), begin.Add(3*time.Hour+time.Second))
		h.Flush()
		if got, want := all.sum("oneway_hour", "packets_sent"), float64(a.sent-10); got != want {
			t.Errorf("%v back: %v packets, want %v", back, got, want)
		}
	}
}

// The store has the rows until the last minute with the former labels of the path: the rest has the new ones.
func TestRowsOfAnHourWithNewTagsDoNotRepeatIt(t *testing.T) {
	before, after := stored{}, stored{}
	to := before.take
	h, a := New(interval, func(p *point.Point) { to(p) }), newAgent(t, "UTC")
	begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	run(h, a, begin, begin.Add(32*time.Minute+20*time.Second))
	to = after.take
	h.Cut(instant.FromTime(begin.Add(32*time.Minute + 30*time.Second)))
	run(h, a, begin.Add(32*time.Minute+30*time.Second), begin.Add(time.Hour))
	for _, field := range []string{"packets_sent", "up_minutes"} {
		of := map[string]string{"packets_sent": "oneway_hour", "up_minutes": "oneway_hour_round_trip"}[field]
		a, b := before.sum(of, field), after.sum(of, field)
		if want := map[string]float64{"packets_sent": 3600, "up_minutes": 60}[field]; a+b != want || a < want/2 || b < want/3 {
			t.Errorf("%s: %v before and %v after, want %v in all", field, a, b, want)
		}
	}
}

// TestExtremesAreOfTheTagsAndOfEachWindow: labels change at 10:32:30, and from 10:40 to 10:50 nothing is read.
func TestExtremesAreOfTheTagsAndOfEachWindow(t *testing.T) {
	rows := map[time.Duration]map[string]float64{}
	begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	all := stored{}
	h, a := New(interval, func(p *point.Point) {
		all.take(p)
		if p.Measurement == "oneway_hour" {
			of := map[string]float64{}
			for _, f := range p.Fields {
				of[f.Key] = numberOf(&f)
			}
			rows[p.At.Time().Sub(begin)] = of
		}
	}), newAgent(t, "UTC")
	least := 0.01
	step := func(from, until time.Duration) {
		for at := from; at <= until; at += interval {
			a.sent += 10
			h.Begin(instant.FromTime(begin.Add(at)))
			a.series(begin.Add(at), func(p *point.Point) {
				if p.Measurement == "oneway_delay" {
					p.Fields = point.Float(point.Float(nil, "delay_min_seconds", least), "delay_max_seconds", 2*least)
				}
				h.Add(p)
			})
			h.End()
		}
	}
	step(0, 32*time.Minute+20*time.Second)
	h.Cut(instant.FromTime(begin.Add(32*time.Minute + 30*time.Second)))
	least = 0.2
	step(32*time.Minute+30*time.Second, 40*time.Minute)
	a.sent += 590
	step(50*time.Minute, time.Hour)
	for at, want := range map[time.Duration]float64{0: 0.01, 32*time.Minute + 30*time.Second: 0.2, 50 * time.Minute: 0} {
		if r := rows[at]; r["delay_min_seconds"] != want || r["delay_max_seconds"] != 2*want {
			t.Errorf("the row of %v has %v, want extremes %v and %v (0: none)", at, r, want, 2*want)
		}
	}
	if n := all.sum("oneway_hour", "packets_sent"); n != 3600 {
		t.Errorf("%v packets, want all 3600", n)
	}
}

// TestPacketsOfAGapOverFullHoursAreOfNoHour: their hours are not known.
func TestPacketsOfAGapOverFullHoursAreOfNoHour(t *testing.T) {
	all := stored{}
	h, a := New(interval, all.take), newAgent(t, "UTC")
	begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	run(h, a, begin, begin.Add(30*time.Minute))
	a.sent += 3 * 3600
	run(h, a, begin.Add(3*time.Hour+30*time.Minute), begin.Add(4*time.Hour))
	h.Flush()
	if n := all.sum("oneway_hour", "packets_sent"); n != 3600 {
		t.Errorf("%v packets in %v, want 3600: 1800 before the gap, 1800 after it", n, rowsOf(all, "oneway_hour"))
	}
}

func TestHolidayAndAgentWithoutCalendar(t *testing.T) {
	all := stored{}
	h, a := New(interval, all.take), newAgent(t, "UTC")
	a.holiday = true
	begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	run(h, a, begin, begin.Add(time.Hour))
	if rows := rowsOf(all, "oneway_hour"); len(rows) != 1 || !strings.Contains(rows[0], " holiday ") {
		t.Errorf("rows %q", rows)
	}
	clear(all)
	h = New(interval, all.take)
	for at := begin; at.Before(begin.Add(time.Hour)); at = at.Add(interval) {
		h.Begin(instant.FromTime(at))
		a.series(at, func(p *point.Point) {
			if p.Measurement != calendarMeasurement {
				h.Add(p)
			}
		})
		h.End()
	}
	if h.Flush(); len(all) != 0 {
		t.Errorf("rows without a local time: %v", all)
	}
}

// TestEveryRowFitsTheSchema: tags and fields, and sources that exist, are in schema_test.go of package point.
func TestEveryRowFitsTheSchema(t *testing.T) {
	tags := map[string][]string{}
	for _, m := range point.HourMeasurements() {
		tags[m.Name] = m.Tags
	}
	n := 0
	h := New(interval, func(p *point.Point) {
		var keys []string
		for _, tag := range p.Tags {
			keys = append(keys, tag.Key)
		}
		if n++; !slices.Equal(keys, tags[p.Measurement]) {
			t.Errorf("%s has tags %v, want %v", p.Measurement, keys, tags[p.Measurement])
		}
	})
	begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	if run(h, newAgent(t, "UTC"), begin, begin.Add(time.Hour)); n == 0 {
		t.Error("no rows")
	}
}

func TestReadingsAllocateNothing(t *testing.T) {
	h, a := New(interval, func(*point.Point) {}), newAgent(t, "UTC")
	begin := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	var points []point.Point
	a.series(begin, func(p *point.Point) { points = append(points, *p) })
	at := instant.FromTime(begin)
	if n := testing.AllocsPerRun(1000, func() {
		at += instant.Time(interval)
		h.Begin(at)
		for i := range points {
			h.Add(&points[i])
		}
		h.End()
	}); n > 0.1 { // the text of an hour
		t.Errorf("%v allocations", n)
	}
}
