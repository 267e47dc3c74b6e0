package agent

import (
	"slices"

	"oneway.example/exporter/core/metric"
)

// MetricGroups lists all metric families, in the order of the documentation: the ones in package metric, and what the types
// declare.
func (t *Types) MetricGroups() []metric.Group {
	return metric.Groups(slices.Concat(
		metric.Declared(t.Probes), metric.Declared(t.Watchers), metric.Declared(t.Outputs), metric.Declared(t.Clocks), metric.Declared(t.Traffic),
	)...)
}
