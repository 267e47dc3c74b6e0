// Package watchers is the registry of watcher types: one line each.
package watchers

import (
	"oneway.example/exporter/watcher"
	"oneway.example/exporter/watchers/gpsd"
	"oneway.example/exporter/watchers/pps"
)

// All makes one of each type.
func All() []watcher.Type {
	return []watcher.Type{
		gpsd.NewType(),
		pps.NewType(),
	}
}
