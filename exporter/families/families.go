// Package families lists the metric families of the whole program, for documents, schemas, dashboards and tests.
package families

import (
	"oneway.example/exporter/agent"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/outputs"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/watchers"
)

// All lists all families, with the ones that the types of each registry declare, in the order of the documentation.
func All() []metric.Group {
	types := agent.Types{Probes: probes.All(), Watchers: watchers.All(), Outputs: outputs.All(), Clocks: clocks.All(), Traffic: traffictypes.All()}
	return types.MetricGroups()
}
