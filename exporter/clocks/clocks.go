// Package clocks is the registry of clock sources.
package clocks

import (
	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/chrony"
	"oneway.example/exporter/clocks/none"
	"oneway.example/exporter/clocks/static"
)

// All makes one of each source, with its default settings. The first is the default.
func All() []clock.Source {
	return []clock.Source{
		chrony.DefaultSource(),
		&static.Source{},
		&none.Source{},
	}
}

// Names are the names of All.
func Names() (all []string) {
	for _, s := range All() {
		all = append(all, s.Name())
	}
	return all
}
