package incident

import (
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

var _ report.Viewed = Body{}

// View draws the delays of the packets, with marks where they were lost, and the share of all packets by delay.
func (b Body) View() report.View {
	delays := []report.Series{{Name: sample.Forward.String(), Form: report.AsLine}, {Name: sample.Reverse.String(), Form: report.AsLine}, {Name: "round trip", Form: report.AsLine}}
	lost := report.Series{Name: "lost", Form: report.AsMarks}
	packets := 0
	for _, r := range b.Rows.of.rows() {
		if record.Outcome(r[record.IncidentOutcome]) != record.Late { // recorded as lost before
			packets++
		}
		at := float64(r[record.IncidentSent]-int64(b.Begin)) / 1e9
		if record.Outcome(r[record.IncidentOutcome]) == record.Lost {
			lost.Add(at, 0)
		}
		for i, column := range []int{record.IncidentForward, record.IncidentReverse, record.IncidentRoundTrip} {
			if r[column] != record.NoTime {
				delays[i].Add(at, float64(r[column])/1e9)
			}
		}
	}
	shares := report.Drawing{Title: "Share of packets by delay", X: report.Axis{Name: "delay", Unit: unit.Seconds}, Y: report.Axis{Name: "packets", Unit: unit.Ratio}}
	for _, s := range delays {
		shares.Series = append(shares.Series, report.Distribution(s.Name, s.Y, packets))
	}
	return report.View{Drawings: []report.Drawing{{
		Title: "Delay of each packet", X: report.Axis{Name: "time", Unit: unit.Seconds}, Y: report.Axis{Name: "delay", Unit: unit.Seconds},
		Series: append(delays, lost),
	}, shares}}
}
