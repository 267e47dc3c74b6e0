package oneway

import (
	"testing"
	"time"

	"github.com/influxdata/telegraf/config"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/output/point"
)

// The rows of hours know how often the agent is read: readings that leave out windows of the probe have no extremes, and a long interval is
// no gap, whose packets have no hour.
func TestRowsOfHoursHaveTheIntervalOfTheReadings(t *testing.T) {
	for interval, want := range map[time.Duration]bool{10 * time.Second: true, 10 * time.Minute: false} {
		o := New()
		o.URL, o.Interval = "http://127.0.0.1:9862", config.Duration(interval)
		a, err := newAttached(o)
		if err != nil {
			t.Fatal(err)
		}
		newest := map[instant.Time]int64{} // packets by the time of the row
		a.addHour = func(p *point.Point) {
			if p.Measurement != "oneway_hour" {
				return
			}
			has := false
			for _, f := range p.Fields {
				has = has || f.Key == "delay_min_seconds"
				if f.Key == "packets_sent" {
					newest[p.At] = f.Value.IntV()
				}
			}
			if has != want {
				t.Errorf("each %v: %+v, want extremes: %v", interval, p.Fields, want)
			}
		}
		path := []point.Tag{{Key: "path", Value: "p"}, {Key: "probe", Value: "stamp"}}
		forward := append([]point.Tag{{Key: "direction", Value: "forward"}}, path...)
		sent, begin := int64(0), time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
		for at := begin; !at.After(begin.Add(90 * time.Minute)); at = at.Add(interval) {
			sent += 100
			a.hours.Begin(instant.FromTime(at))
			for _, p := range []point.Point{
				{Measurement: "oneway_packets", Tags: forward, Fields: point.Int(nil, "packets_sent_total", sent)},
				{Measurement: "oneway_delay", Tags: forward, Fields: point.Float(point.Int(nil, "delay_seconds_count", sent), "delay_min_seconds", 0.01)},
				{Measurement: "oneway_agent_calendar", Tags: []point.Tag{{Key: "zone", Value: "UTC"}}, Fields: point.Float(point.Float(nil, "utc_offset_seconds", 0), "holiday", 0)},
			} {
				p.At = instant.FromTime(at)
				a.hours.Add(&p)
			}
			a.hours.End()
		}
		sum := int64(0)
		for _, n := range newest {
			sum += n
		}
		if len(newest) != 2 || sum != sent-100 { // the first reading has counted since an unknown time
			t.Errorf("each %v: %d packets in %d hours, want %d in 2", interval, sum, len(newest), sent-100)
		}
	}
}
