package slareport

import (
	"fmt"
	"io"
	"testing"
	"time"

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

func reportOf(t *testing.T, s *slareport.Server, to time.Time) slareport.Row {
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
	}, 24*60))
	w := reportOf(t, s, begin().AddDate(0, 1, 0)).Ways[0]
	near(t, "least loss", w.Loss, 0.1)
	near(t, "highest loss", w.LossHighest, 0.3)
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
