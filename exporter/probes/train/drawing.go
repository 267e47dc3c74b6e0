package train

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe/report"
)

var (
	_ loadtest.Drawn   = (*Result)(nil)
	_ loadtest.Evident = (*Result)(nil)
)

// Drawings of each direction: the distribution of the capacities of the clean trains, with a series for each size.
func (r *Result) Drawings() (all []report.Drawing) {
	for _, d := range r.Directions {
		one := report.Drawing{
			Title: "share of clean trains by capacity", Direction: d.DirectionName, X: report.Axis{Name: "capacity", Unit: unit.BytesPerSecond},
			Y: report.Axis{Name: "trains", Unit: unit.Ratio},
		}
		for _, z := range d.Sizes {
			one.Series = append(one.Series, report.Distribution(fmt.Sprintf("%d B", z.PacketBytes), z.Capacities, len(z.Capacities)))
		}
		all = append(all, one)
	}
	return all
}

// EvidenceLines tells how many trains of each size were clean, and why the last of the others were discarded.
func (r *Result) EvidenceLines() (all []report.Line) {
	for _, d := range r.Directions {
		for _, z := range d.Sizes {
			total := 0
			for _, n := range z.Trains {
				total += n
			}
			words := []string{fmt.Sprintf("%d of %d trains clean", len(z.Capacities), total)}
			for _, result := range slices.Sorted(maps.Keys(z.Evidence)) {
				words = append(words, fmt.Sprintf("%d %s: %s", z.Trains[result], result, z.Evidence[result]))
			}
			all = append(all, report.Line{Quantity: fmt.Sprintf("%d B", z.PacketBytes), Direction: d.DirectionName, Value: strings.Join(words, "; ")})
		}
	}
	return all
}
