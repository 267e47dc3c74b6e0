package tcpshort

import (
	"slices"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe/report"
)

var _ loadtest.Drawn = (*Result)(nil)

// Drawings of each direction: the distribution of the completion times, with a series for each size. Flows that did not
// end keep the share below 100 %.
func (r *Result) Drawings() (all []report.Drawing) {
	for i := range r.Sizes {
		z := &r.Sizes[i]
		at := slices.IndexFunc(all, func(d report.Drawing) bool { return d.Direction == z.Direction })
		if at < 0 {
			at, all = len(all), append(all, report.Drawing{
				Title: "completion time, share of the flows", Direction: z.Direction, X: report.Axis{Name: "completion time", Unit: unit.Seconds, Log: true}, Y: report.Axis{Name: "flows", Unit: unit.Ratio},
			})
		}
		all[at].Series = append(all[at].Series, z.distribution())
	}
	return all
}

// distribution is the share of the flows that ended within each time.
func (z *Size) distribution() report.Series {
	var times []float64
	for _, f := range z.Flows {
		if f.Completion != nil {
			times = append(times, *f.Completion)
		}
	}
	return report.Distribution(z.Words(), times, len(z.Flows))
}
