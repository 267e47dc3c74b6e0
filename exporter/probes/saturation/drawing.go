package saturation

import (
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe/report"
)

var (
	_ loadtest.Drawn   = (*Result)(nil)
	_ loadtest.Evident = (*Result)(nil)
)

// EvidenceLines tells for each load what the queue's state follows from.
func (r *Result) EvidenceLines() (all []report.Line) {
	for _, d := range r.Directions {
		if d.Load != nil && d.Load.Evidence != "" {
			all = append(all, report.Line{Quantity: "queue", Direction: d.Direction, Value: words(d.Load.State) + ": " + d.Load.Evidence})
		}
	}
	return all
}

// Drawings of each direction: throughput and delay of a load by time, or the steps of a sweep or search by their rate.
func (r *Result) Drawings() (all []report.Drawing) {
	for _, d := range r.Directions {
		if d.Load != nil {
			all = append(all, report.Toward(d.Direction, d.Load.drawings()...)...)
		}
		if len(d.Steps) > 0 {
			all = append(all, report.Toward(d.Direction, d.drawSteps()...)...)
		}
	}
	return all
}

func (l *Load) drawings() []report.Drawing {
	all := []report.Drawing{
		drawRates("throughput by second", l.PerSecond), drawDelays("delay by second", l.PerSecond),
		drawRates("throughput, first seconds", l.First), drawDelays("delay, first seconds", l.First),
	}
	if n := len(l.delays); n > 0 {
		all = append(all, report.Drawing{
			Title: "share of packets by delay", X: report.Axis{Name: "one-way delay", Unit: unit.Seconds},
			Y: report.Axis{Name: "packets", Unit: unit.Ratio}, Series: []report.Series{report.Distribution("arrived packets of the load", l.delays, n)},
		})
	}
	return all
}

func overTime(title, name string, measured unit.Unit, series ...report.Series) report.Drawing {
	return report.Drawing{
		Title: title, X: report.Axis{Name: "time", Unit: unit.Seconds}, Y: report.Axis{Name: name, Unit: measured}, Series: series,
	}
}

// drawRates draws the rates of bins, which have the time of their end.
func drawRates(title string, bins []Bin) report.Drawing {
	sent, received := report.Series{Name: "sent", Form: report.AsSteps}, report.Series{Name: "received", Form: report.AsSteps}
	begin := 0.0
	for i, b := range bins {
		sent.Add(begin, b.Sent)
		received.Add(begin, b.Received)
		if begin = b.Elapsed.Seconds(); i == len(bins)-1 {
			sent.Add(begin, b.Sent)
			received.Add(begin, b.Received)
		}
	}
	return overTime(title, "rate", unit.BytesPerSecond, sent, received)
}

// drawDelays draws the delays of bins, at their end; those of clocks that are not trusted have an unknown offset.
func drawDelays(title string, bins []Bin) report.Drawing {
	series := []report.Series{{Name: "largest", Form: report.AsLine}, {Name: "median", Form: report.AsLine}, {Name: "least", Form: report.AsLine}}
	for _, b := range bins {
		if b.Delays == nil {
			continue
		}
		for i := range series {
			series[i].Add(b.Elapsed.Seconds(), b.Delays[2-i].Seconds())
		}
	}
	return overTime(title, "one-way delay", unit.Seconds, series...)
}

// drawSteps draws the rates and the losses of steps by their offered rate.
func (d *Direction) drawSteps() []report.Drawing {
	received, loss := report.Series{Name: "received", Form: report.AsPoints}, report.Series{Name: "loss", Form: report.AsPoints}
	if d.Sustained != nil { // those of a search are not in order of their rate
		received.Form, loss.Form = report.AsMarks, report.AsMarks
	}
	for _, s := range d.Steps {
		received.Add(s.Offered, s.Received)
		loss.Add(s.Offered, s.Loss)
	}
	by := report.Axis{Name: "offered", Unit: unit.BytesPerSecond}
	return []report.Drawing{
		{Title: "throughput by offered rate", X: by, Y: report.Axis{Name: "received", Unit: unit.BytesPerSecond}, Series: []report.Series{received}},
		{Title: "loss by offered rate", X: by, Y: report.Axis{Name: "loss", Unit: unit.Ratio}, Series: []report.Series{loss}},
	}
}
