package saturate_test

import (
	"log/slog"
	"time"

	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
)

var target = probe.Target{Path: "office", Probe: "saturate", Peer: "192.0.2.1"}

func envWith(sink metric.Sink) probe.Env {
	return probe.Env{Log: slog.New(slog.DiscardHandler), Sink: sink, Clock: static.New(time.Millisecond, metric.Discard{})}
}
