// Package traffics lists the types of traffic that far ends serve: one line a type.
package traffics

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
