// Package clocks is the registry of clock sources: one line each.
package clocks

import (
	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/chrony"
	"oneway.example/exporter/clocks/none"
	"oneway.example/exporter/clocks/static"
)

// All makes one of each type. The first is the default.
func All() []clock.Type {
	return []clock.Type{
		chrony.NewType(),
		static.NewType(),
		none.NewType(),
	}
}
