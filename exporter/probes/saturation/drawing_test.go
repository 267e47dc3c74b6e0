package saturation

import (
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/probe/report"
)

// titles are those of the drawings.
func titles(all []report.Drawing) string {
	var text []string
	for _, d := range all {
		text = append(text, d.Direction+": "+d.Title)
	}
	return strings.Join(text, "; ")
}

func TestDrawingsOfALoadAreByTime(t *testing.T) {
	three := [3]report.Seconds{1e6, 2e6, 3e6}
	l := &Load{PerSecond: []Bin{
		{Elapsed: report.Seconds(time.Second), Sent: 10, Received: 5}, {Elapsed: 2 * report.Seconds(time.Second), Sent: 20, Received: 6, Delays: &three},
	}}
	all := (&Result{Directions: []*Direction{{Direction: "forward", Load: l}}}).Drawings()
	if want := "forward: throughput by second; forward: delay by second; forward: throughput, first seconds; forward: delay, first seconds"; titles(all) != want {
		t.Errorf("got %s", titles(all))
	}
	if s := all[0].Series[1]; s.Name != "received" || len(s.X) != 3 || s.X[0] != 0 || s.X[2] != 2 || s.Y[0] != 5 || s.Y[1] != 6 || s.Y[2] != 6 {
		t.Errorf("%+v", s)
	}
	if s := all[1].Series[0]; s.Name != "largest" || len(s.X) != 1 || s.X[0] != 2 || s.Y[0] != 0.003 { // the first bin has no valid delay
		t.Errorf("%+v", s)
	}
}

func TestDrawingsOfASweepAreByRate(t *testing.T) {
	d := &Direction{Direction: "reverse", Steps: []Step{{Offered: 100, Received: 99}, {Offered: 200, Received: 150, Loss: 0.25}}}
	all := (&Result{Directions: []*Direction{d}}).Drawings()
	if titles(all) != "reverse: throughput by offered rate; reverse: loss by offered rate" || all[0].Series[0].Form != report.AsPoints || all[1].Series[0].Y[1] != 0.25 {
		t.Errorf("%+v", all)
	}
	d.Sustained = &d.Steps[0]
	if all := (&Result{Directions: []*Direction{d}}).Drawings(); all[0].Series[0].Form != report.AsMarks {
		t.Errorf("steps of a search are joined by a line: %+v", all[0])
	}
}
