// Package traffictypes is the registry of types of traffic that load servers serve: one line each.
package traffictypes

import (
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/load/traffictypes/mixed"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// All makes one of each type.
func All() []traffic.Type {
	return []traffic.Type{
		udptraffic.NewType(),
		tcptraffic.NewType(),
		mixed.NewType(),
	}
}
