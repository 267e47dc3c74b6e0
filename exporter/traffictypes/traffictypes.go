// Package traffic types lists the types of traffic that remote ends serve: one line a type.
package traffictypes

import (
	"oneway.example/exporter/traffic"
	"oneway.example/exporter/traffic/udp"
)

// All are the types of traffic.
func All() []traffic.Type {
	return []traffic.Type{
		udp.Traffic{},
	}
}
