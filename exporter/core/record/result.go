package record

import (
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
)

// Result has the values of a completed run, which are also those of its metrics.
type Result struct {
	// Path and Probe are the metric labels; Run is the run's id, the name of its report.
	Path, Probe, Run string
	// Begin is the begin of the run.
	Begin instant.Time
	// LocalHour (0..23) and DayType are the hour and the kind of day of its end, in the local time of the agent.
	LocalHour int
	DayType   localday.DayType
	// Values are shared by all readers, which must not change them.
	Values []Value
}

// Value is a gauge of a run, what it added to a counter, or the observations of a histogram.
type Value struct {
	Desc *metric.Desc
	// Labels are the values of Desc.Labels after path and probe.
	Labels []string
	// Values has one element for a gauge or counter, and the observations of a histogram in their order.
	Values []float64
}
