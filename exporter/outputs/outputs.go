// Package outputs is the registry of output types: one line each.
package outputs

import (
	"oneway.example/exporter/output"
	"oneway.example/exporter/outputs/influxdb"
)

// All makes one of each type.
func All() []output.Type {
	return []output.Type{
		influxdb.NewType(),
	}
}
