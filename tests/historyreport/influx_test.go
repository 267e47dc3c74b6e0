package historyreport

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/estimate/history"
	"oneway.example/exporter/serve/historyreport"
	"oneway.example/tests/influx"
)

// Points of a quarter of an hour, for four weeks around the end of daylight saving time.
func TestHistoriesOfARealInfluxDB(t *testing.T) {
	s := influx.New(t, false)
	s.Start()
	s.Query("", "CREATE DATABASE oneway")
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, time.October, 12, 0, 0, 0, 0, zone)
	to := from.AddDate(0, 0, 28)
	var lines bytes.Buffer
	lost, hours := 0, int(to.Sub(from).Hours())
	for i, at := 0, from.Add(-time.Hour); at.Before(to.Add(time.Hour)); i, at = i+1, at.Add(15*time.Minute) {
		delay := 0.02 + 0.0001*float64(i*i%7)
		if at.In(zone).Hour() >= 18 && at.In(zone).Hour() < 22 {
			delay += 0.005
		}
		lost += i % 3
		fmt.Fprintf(&lines, "oneway_delay,path=it's,probe=stamp,direction=forward delay_p50_seconds=%g,delay_error_bound_seconds=0.0003 %d\n", delay, at.UnixNano())
		fmt.Fprintf(&lines, "oneway_packets,path=it's,probe=stamp,direction=forward packets_lost_total=%di,packets_sent_total=%di %d\n", lost, 900*(i+1), at.UnixNano())
		if i%8 == 0 { // a run in two hours
			fmt.Fprintf(&lines, "oneway_run_tcp,path=it's,probe=tcp,direction=forward,local_hour=%d,day_type=holiday tcp_throughput_bytes_per_second=%d %d\n", at.In(zone).Hour(), 1000000+i, at.UnixNano())
		}
	}
	reply, err := http.Post(s.URL+"/write?db=oneway", "text/plain", &lines)
	if err != nil || reply.StatusCode != http.StatusNoContent {
		t.Fatal(err, reply)
	}
	_ = reply.Body.Close() // it is empty
	source := historyreport.InfluxDB{URL: s.URL, Database: "oneway"}
	read := func(measure string) (historyreport.Series, historyreport.Measure) {
		t.Helper()
		one, m := readOne(t, source, measure, "it's", from, to, zone)
		if one.From != "points in the default retention policy" || !strings.Contains(one.Why, `in the retention policy "long": retention policy not found`) {
			t.Errorf("%s: %s: %s", measure, one.From, one.Why)
		}
		return one, m
	}
	o := historyreport.Options{Busy: [2]int{18, 22}, End: to, Zone: zone}
	one, m := read("delay")
	h := historyreport.Analyze(one, m, o)
	if h.Samples != hours || h.Days != 28 || h.MissingHours != 0 || h.Bound != 0.0003 || h.HoursOfDay.Verdict.Outcome != string(history.Differs) || h.HoursOfDay.Highest < 18 || h.HoursOfDay.Highest > 21 {
		t.Errorf("%d hours: %+v, %+v", hours, h.Counts, h.HoursOfDay)
	}
	one, m = read("loss")
	if h := historyreport.Analyze(one, m, o); h.Samples != hours || math.Abs(h.Median-1./900) > 1e-5 {
		t.Errorf("%d hours: %+v, loss %v", hours, h.Counts, h.Median)
	}
	one, m = read("throughput")
	if h := historyreport.Analyze(one, m, o); math.Abs(float64(h.Samples-hours/2)) > 1 || one.Labels["local_hour"] != "" || one.Samples[0].Kind != localday.Holiday {
		t.Errorf("%d hours: %+v, %v, %+v", hours, h.Counts, one.Labels, one.Samples[0])
	}
}

// readOne reads a measure of a path.
func readOne(t *testing.T, from historyreport.Source, measure, path string, begin, end time.Time, zone *time.Location) (historyreport.Series, historyreport.Measure) {
	t.Helper()
	m, _ := historyreport.MeasureByName(measure)
	all, err := from.Read(t.Context(), historyreport.Query{Measure: m, Labels: map[string]string{"path": path}, From: begin, To: end, Zone: zone})
	if err != nil || len(all) != 1 {
		t.Fatal(measure, len(all), err)
	}
	return all[0], m
}

// Rows of the hours of 100 days in the retention policy long, in a zone with three quarters of an hour, beside points of a day: the rows are read, with the hour and the
// kind of day of the agent. Points that reach further back are read in place of them.
func TestRowsOfHoursOfARealInfluxDB(t *testing.T) {
	s := influx.New(t, false)
	s.Start()
	s.Query("", "CREATE DATABASE oneway WITH DURATION 1000d NAME raw")
	s.Query("", `CREATE RETENTION POLICY "long" ON oneway DURATION 1000d REPLICATION 1`)
	zone, err := time.LoadLocation("Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, time.July, 1, 0, 0, 0, 0, zone)
	to := from.AddDate(0, 0, 100)
	var rows, points bytes.Buffer
	for at := from; at.Before(to); at = at.Add(time.Hour) {
		tags := fmt.Sprintf("path=p,probe=stamp,direction=forward,host=h,local_hour=%d,day_type=%s,zone=Asia/Kathmandu", at.Hour(), "holiday")
		slow := 0 // of 900 delays, the others are 12 ms
		if at.Hour() == 20 {
			slow = 600
		}
		row := func(n int, at time.Time) {
			fmt.Fprintf(&rows, "oneway_hour,%s packets_sent=%di,packets_lost=%di,packets_received=%di,packets_undecided=0i,delays=%di,delay_seconds_sum=%v,", tags, n+n/9, n/9, n, n, 0.012*float64(n-slow)+0.03*float64(slow))
			fmt.Fprintf(&rows, "delay_min_seconds=0.012,delay_max_seconds=0.03,delay_error_bound_seconds=0.0001,delays_le_0_001=0i,delays_le_0_005=0i,delays_le_0_02=%di,delays_le_0_05=%di,delays_le_0_1=%[2]di,delays_le_0_3=%[2]di,delays_le_1_25=%[2]di %d\n",
				n-slow, n, at.UnixNano())
		}
		if at.Day() == 3 && at.Hour() == 5 { // a restart
			row(450, at)
			row(450, at.Add(30*time.Minute))
		} else {
			row(900, at)
		}
		fmt.Fprintf(&rows, "oneway_hour_voice,%s,codec=G.711,model=g107,buffer=adaptive voice_readings=360i,voice_r_factor_sum=%d %d\n", tags, 360*(80-slow/60), at.UnixNano())
		fmt.Fprintf(&rows, "oneway_run_tcp,path=p,probe=tcp,direction=forward,local_hour=%d,day_type=holiday last_tcp_throughput_bytes_per_second=%d %d\n", at.Hour(), 1000000+slow, at.UnixNano())
	}
	early := from.AddDate(0, 0, -20)
	for at := early; at.Before(to); at = at.Add(10 * time.Minute) {
		path := "old"
		if !at.Before(to.AddDate(0, 0, -1)) {
			path = "p"
		}
		fmt.Fprintf(&points, "oneway_delay,path=%s,probe=stamp,direction=forward,host=h delay_p50_seconds=0.5,delay_error_bound_seconds=0.0003 %d\n", path, at.UnixNano())
	}
	last := to.Add(-time.Hour).UnixNano()
	fmt.Fprintf(&rows, "oneway_hour,path=old,probe=stamp,direction=forward,host=h,local_hour=3,day_type=weekday,zone=UTC delays=1i,delays_le_1_25=1i,delay_seconds_sum=0.5,delay_error_bound_seconds=0.1 %d\n", last)
	s.Write(t, "long", rows.String())
	s.Write(t, "raw", points.String())
	source := historyreport.InfluxDB{URL: s.URL, Database: "oneway"}
	read := func(measure string) historyreport.History {
		t.Helper()
		one, m := readOne(t, source, measure, "p", from, to, time.UTC)
		if !strings.Contains(one.From, `in the retention policy "long"`) || one.Why != "" || one.Labels["local_hour"]+one.Labels["zone"] != "" {
			t.Errorf("%s is from %s: %s, with the labels %v", measure, one.From, one.Why, one.Labels)
		}
		h := historyreport.Analyze(one, m, historyreport.Options{Busy: [2]int{18, 22}, End: to, Zone: time.UTC})
		if h.Samples != 2400 || h.MissingHours != 0 {
			t.Errorf("%s: %+v, want 2400 hours", measure, h.Counts)
		}
		return h
	}
	h := read("delay")
	if math.Abs(h.Median-0.012) > 1e-6 || math.Abs(h.Bound-0.0001) > 1e-6 || h.HoursOfDay.Verdict.Outcome != string(history.Differs) || h.HoursOfDay.Highest != 20 {
		t.Errorf("delay: median %v +- %v, %+v", h.Median, h.Bound, h.HoursOfDay)
	}
	if m := h.Months; len(m) != 4 || m[0].Month != "2026-07" || m[0].Delays != 31*24*900 || math.Abs(*m[0].P50-0.012) > *m[0].P50Bound+1e-9 {
		t.Errorf("months %+v", m)
	}
	if h := read("loss"); math.Abs(h.Median-0.1) > 1e-9 {
		t.Errorf("loss %v, want 0.1", h.Median)
	}
	if h := read("r"); h.Median != 80 || h.HoursOfDay.Lowest != 20 {
		t.Errorf("R %v, %+v", h.Median, h.HoursOfDay)
	}
	if h := read("throughput"); h.Median != 1000000 {
		t.Errorf("throughput %v", h.Median)
	}
	if one, _ := readOne(t, source, "delay", "old", early, to, time.UTC); one.From != "points in the default retention policy" || !strings.Contains(one.Why, `begin at`) || len(one.Samples) < 2500 {
		t.Errorf("%d samples from %s: %s", len(one.Samples), one.From, one.Why)
	}
}
