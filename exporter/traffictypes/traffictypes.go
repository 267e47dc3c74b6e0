// Package traffictypes lists the types of traffic that load servers serve.
package traffictypes

import (
	"oneway.example/exporter/traffic"
	"oneway.example/exporter/traffic/mixed"
	"oneway.example/exporter/traffic/tcp"
	"oneway.example/exporter/traffic/udp"
)

// All returns the types of traffic.
func All() []traffic.Type {
	return []traffic.Type{
		udp.Traffic{},
		tcp.Traffic{},
		mixed.Traffic{},
	}
}
