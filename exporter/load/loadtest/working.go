package loadtest

import (
	"fmt"
	"slices"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/estimate/working"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Working is the working delay of a run: the delay of light test packets during its load, compared with the idle link.
type Working struct {
	// Interval is the mean time between packets.
	Interval report.Seconds `json:"interval_seconds"`
	// Reason is why there are no values; empty: there are.
	Reason string `json:"reason,omitempty"`
	// Parts are those of the run that have packets.
	Parts []working.Part `json:"parts,omitempty"`
}

// lines is one line for each tested direction, or none with a Reason.
func (w *Working) lines(directions []sample.Direction) (lines []probe.Result) {
	if w.Reason != "" {
		return nil
	}
	var idle *working.Part
	if i := slices.IndexFunc(w.Parts, func(p working.Part) bool { return p.Loaded == working.None }); i >= 0 {
		idle = &w.Parts[i]
	}
	for _, d := range directions {
		line := probe.Result{Value: "not measured"}
		if loaded := working.UnderLoad(w.Parts, d); loaded != nil {
			if line = (probe.Result{Numbers: compare(idle, loaded, d)}); line.Numbers == nil {
				line.Unknown = fmt.Sprintf("fewer than %d replies", working.MinPackets)
			}
		}
		line.Quantity, line.Direction = "working delay", d.String()
		lines = append(lines, line)
	}
	return lines
}

// compare is "idle 14.0 ms ± 1.2 ms, working 880.0 ms ± 1.2 ms, loss 13 %, R 91 -> 12 (one packet changes it by up to 51)": the medians and the loss, if any, in one direction, or of round trips without synchronized
// clocks, or the loss alone where nothing arrives; nil if there is none of these.
func compare(idle, loaded *working.Part, d sample.Direction) []report.Number {
	own := loaded.Way(d)
	before := &working.Way{}
	if idle != nil {
		before = idle.Way(d)
	}
	switch {
	case own.Delay != nil:
		numbers := append(medians("", before.Delay, own.Delay), lossOf(own)...)
		if own.R != nil && before.R != nil {
			numbers = append(numbers, report.Number{Label: "R", Before: before.R, Value: own.R, Unit: unit.RFactor, Text: coarse(before, own)})
		}
		return numbers
	case loaded.RoundTrip != nil:
		var trip *working.Quantiles
		if idle != nil {
			trip = idle.RoundTrip
		}
		return append(medians("round trip ", trip, loaded.RoundTrip), lossOf(own)...)
	}
	return lossOf(own)
}

// coarse says that R is of few packets, in one part or the other; empty: one packet changes it by no more than R may be off where it is known.
func coarse(ways ...*working.Way) string {
	step := 0.0
	for _, w := range ways {
		if w.RStep != nil {
			step = max(step, *w.RStep)
		}
	}
	if step <= voice.MostUnknown {
		return ""
	}
	return fmt.Sprintf("(one packet changes it by up to %s)", unit.RFactor.Format(step))
}

// lossOf is the loss of a direction, or its limits; nil: nothing was lost, or it is unknown.
func lossOf(own *working.Way) (all []report.Number) {
	if own.Loss != nil && *own.Loss > 0 {
		all = append(all, report.Number{Label: "loss", Value: own.Loss, Unit: unit.Ratio})
	}
	if l := own.LossLimits; l != nil {
		all = append(all, report.Number{Label: "loss", Range: &[2]float64{l.Low, l.High}, Unit: unit.Ratio})
	}
	return all
}

// medians has the words before the first label. One-way delays have their bounds; in their difference a constant clock offset cancels.
func medians(before string, idle, loaded *working.Quantiles) (all []report.Number) {
	if idle != nil {
		all, before = append(all, report.Number{Label: before + "idle", Value: &idle.P50, Bound: idle.ErrorBound, Unit: unit.Seconds}), ""
	}
	return append(all, report.Number{Label: before + "working", Value: &loaded.P50, Bound: loaded.ErrorBound, Unit: unit.Seconds})
}

// publish sets the gauges of all parts; of the parts in which a direction was loaded only working.UnderLoad has gauges of that direction.
func (w *Working) publish(v *Values) {
	if w == nil {
		return
	}
	setAll := func(d *metric.Desc, q *working.Quantiles, labels ...string) {
		if q != nil {
			v.Set(d, q.P50, append(labels, "0.5")...)
			v.SetKnown(d, q.P95, append(labels, "0.95")...)
		}
	}
	for i := range w.Parts {
		p := &w.Parts[i]
		loaded := string(p.Loaded)
		setAll(metric.WorkingRTT, p.RoundTrip, loaded)
		v.SetKnown(metric.WorkingRoundTrips, p.RoundTrips, loaded)
		for _, d := range sample.Directions() {
			if !working.Shown(w.Parts, i, d) {
				continue
			}
			way, name := p.Way(d), d.String()
			setAll(metric.WorkingDelay, way.Delay, name, loaded)
			setAll(metric.WorkingVariation, way.Variation, name, loaded)
			v.SetKnown(metric.WorkingLoss, way.Loss, name, loaded)
			v.SetKnown(metric.WorkingR, way.R, name, loaded)
			v.SetKnown(metric.WorkingRStep, way.RStep, name, loaded)
			if way.Delay != nil {
				v.SetKnown(metric.WorkingDelayBound, way.Delay.ErrorBound, name, loaded)
			}
		}
	}
}
