package sizesweep

import (
	"fmt"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe/report"
)

var _ loadtest.Drawn = (*Result)(nil)

// Drawings of each direction: throughput, delay and loss by packet size, with a series for each packet rate.
func (r *Result) Drawings() (all []report.Drawing) {
	by := report.Axis{Name: "packet size", Unit: unit.Bytes}
	for _, of := range []struct {
		title, name string
		unit        unit.Unit
		value       func(*CellValues) *float64
	}{
		{"throughput", "received", unit.BytesPerSecond, func(v *CellValues) *float64 { return v.Received }},
		{"delay", "median delay", unit.Seconds, func(v *CellValues) *float64 { return v.Delay }},
		{"loss", "loss", unit.Ratio, func(v *CellValues) *float64 { return v.Loss }},
	} {
		at, series := map[string]int{}, map[string]map[int]int{}
		for i := range r.Cells {
			c := &r.Cells[i]
			v := of.value(&c.Median)
			if v == nil {
				continue
			}
			if series[c.DirectionName] == nil {
				at[c.DirectionName], series[c.DirectionName] = len(all), map[int]int{}
				all = append(all, report.Drawing{Title: of.title + " by packet size", Direction: c.DirectionName, X: by, Y: report.Axis{Name: of.name, Unit: of.unit}})
			}
			d := &all[at[c.DirectionName]]
			k, known := series[c.DirectionName][c.PacketRate]
			if !known {
				k = len(d.Series)
				series[c.DirectionName][c.PacketRate] = k
				d.Series = append(d.Series, report.Series{Name: fmt.Sprintf("%d packets/s", c.PacketRate), Form: report.AsPoints})
			}
			d.Series[k].Add(float64(c.PacketBytes), *v)
		}
	}
	return all
}
