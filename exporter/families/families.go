// Package families lists the types of the whole program and their metric families, for programs, documents, schemas, dashboards
// and tests.
package families

import (
	"oneway.example/exporter/agent"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/outputs"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/watchers"
)

// Types are the types of all registries.
func Types() agent.Types {
	return agent.Types{Probes: probes.All(), Watchers: watchers.All(), Outputs: outputs.All(), Clocks: clocks.All(), Traffic: traffictypes.All()}
}

// All lists all families, with the ones that the types of each registry declare, in the order of the documentation.
func All() []metric.Group {
	types := Types()
	return types.MetricGroups()
}

// Tables lists the schemas of all tables of raw samples.
func Tables() []*record.Schema {
	types := Types()
	return types.Tables()
}
