// Package collect makes points of all that an agent measures: its series at an interval, and the raw samples of the
// recorder when they are recorded. Each output has a collector of its own.
package collect

import (
	"context"
	"time"

	"oneway.example/exporter/output"
	"oneway.example/exporter/point"
)

// Options select what is collected.
type Options struct {
	// Interval of the series; 0: no series.
	Interval time.Duration
	// Tags are added to every point.
	Tags []point.Tag
	// FirstRows is the time from the begin of a transfer of which every packet is collected; later ones are thinned out so that a
	// transfer has at most MaxRows points.
	FirstRows time.Duration
	MaxRows   int
}

// Run collects until ctx ends. emit receives the points in batches, those of one source in the order of time; they are valid
// during the call, which must not block for long: raw samples that do not fit into the queues meanwhile are dropped and
// counted.
func Run(ctx context.Context, env output.Env, o Options, emit func([]point.Point)) error {
	<-ctx.Done()
	return nil
}
