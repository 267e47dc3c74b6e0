package tcpsweep

import (
	"cmp"
	"fmt"
	"slices"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe/report"
)

var _ loadtest.Drawn = (*Result)(nil)

// Drawings of each direction: throughput and RTT by buffer, with a series for each congestion control. A cell stands at
// the smaller of its buffers; auto-tuning at both ends is a level line.
func (r *Result) Drawings() (all []report.Drawing) {
	by := report.Axis{Name: "buffer", Unit: unit.Bytes, Log: true}
	for _, d := range sample.Directions() {
		throughput := r.byBuffer(d, func(m *MeasuredCell) *[3]float64 { return m.Throughput })
		if len(throughput) == 0 {
			continue
		}
		for _, k := range r.Knees {
			if k.Direction == d && k.BDP != nil {
				name := fmt.Sprintf("BDP of %s (%s)", k.CongestionControl, unit.BufferBytes.Format(*k.BDP))
				throughput = append(throughput, report.Series{Name: name, Form: report.AsLine, X: []float64{*k.BDP, *k.BDP}, Y: []float64{0, k.Best}})
			}
		}
		rtt := r.byBuffer(d, func(m *MeasuredCell) *[3]float64 { return m.RTT })
		all = append(all, report.Toward(d.String(),
			report.Drawing{Title: "throughput by buffer", X: by, Y: report.Axis{Name: "median throughput", Unit: unit.BytesPerSecond}, Series: throughput},
			report.Drawing{Title: "round-trip time by buffer", X: by, Y: report.Axis{Name: "median RTT", Unit: unit.Seconds}, Series: rtt})...)
	}
	return all
}

// byBuffer has the medians of a value in a direction.
func (r *Result) byBuffer(d sample.Direction, of func(*MeasuredCell) *[3]float64) (series []report.Series) {
	type point struct{ x, y float64 }
	var names []string
	sized, auto := map[string][]point{}, map[string][]float64{}
	smallest, largest := int64(unlimited), int64(0)
	for i := range r.Cells {
		m := &r.Cells[i]
		v := of(m)
		if m.Direction != d || v == nil {
			continue
		}
		if !slices.Contains(names, m.name()) {
			names = append(names, m.name())
		}
		if b := m.buffer(); b < unlimited {
			sized[m.name()] = append(sized[m.name()], point{float64(b), v[1]})
			smallest, largest = min(smallest, b), max(largest, b)
		} else {
			auto[m.name()] = append(auto[m.name()], v[1])
		}
	}
	if largest == 0 { // auto-tuning only
		smallest, largest = 1000, 1_000_000
	}
	for _, name := range names {
		if points := sized[name]; len(points) > 0 {
			slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
			s := report.Series{Name: name, Form: report.AsPoints}
			for i, p := range points {
				if s.Add(p.x, p.y); i > 0 && p.x == points[i-1].x { // sizes of both ends were combined
					s.Form = report.AsMarks
				}
			}
			series = append(series, s)
		}
		for _, v := range auto[name] {
			series = append(series, report.Series{Name: name + ", auto-tuning", Form: report.AsLine, X: []float64{float64(smallest), float64(largest)}, Y: []float64{v, v}})
		}
	}
	return series
}
