// Package probes is the registry of probe types: one line each.
package probes

import (
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/message"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/exporter/probes/sizesweep"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/probes/tcp"
	"oneway.example/exporter/probes/tcpshort"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/exporter/probes/train"
)

// All makes one of each type. A Type may own sockets that its probers share, so every agent calls this once.
func All() []probe.Type {
	return []probe.Type{
		stamp.NewType(),
		saturation.NewType(),
		sizesweep.NewType(),
		train.NewType(),
		tcp.NewType(),
		tcpsweep.NewType(),
		tcpshort.NewType(),
		message.NewType(),
	}
}
