// Package traffictypes lists the types of traffic that load servers serve.
package traffictypes

import (
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/load/traffictypes/mixed"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// All returns the types of traffic.
func All() []traffic.Type {
	return []traffic.Type{
		udptraffic.Traffic{},
		tcptraffic.Traffic{},
		mixed.Traffic{},
	}
}
