package agent

import (
	"slices"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
)

// MetricGroups lists all metric families, in the order of the documentation: the ones in package metric, and what the types
// declare.
func (t *Types) MetricGroups() []metric.Group {
	return metric.Groups(slices.Concat(
		metric.Declared(t.Probes), metric.Declared(t.Watchers), metric.Declared(t.Outputs), metric.Declared(t.Clocks), metric.Declared(t.Traffic),
	)...)
}

// Tables lists the schemas of all tables of raw samples: the packets of incidents, events, and what the types declare.
func (t *Types) Tables() []*record.Schema {
	return slices.Concat(
		[]*record.Schema{record.IncidentPackets, record.Events},
		record.Declared(t.Probes), record.Declared(t.Watchers), record.Declared(t.Outputs), record.Declared(t.Clocks), record.Declared(t.Traffic),
	)
}
