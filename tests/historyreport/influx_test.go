package historyreport

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
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
		m, _ := historyreport.MeasureByName(measure)
		all, err := source.Read(t.Context(), historyreport.Query{Measure: m, Labels: map[string]string{"path": "it's"}, From: from, To: to, Zone: zone})
		if err != nil || len(all) != 1 {
			t.Fatal(measure, len(all), err)
		}
		return all[0], m
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
