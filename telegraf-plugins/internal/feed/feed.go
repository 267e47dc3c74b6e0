// Package feed passes points to Telegraf's accumulator.
package feed

import (
	"context"
	"sync"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/metric"

	"oneway.example/exporter/output/point"
)

// Feed passes batches of points to an accumulator, in order. The accumulator of an external plugin waits while Telegraf does not
// read; then Add waits, too, and at most two batches are in memory. Make one with Start.
type Feed struct {
	batches chan []telegraf.Metric
	adding  sync.WaitGroup
}

// Start starts a feed. Close ends it.
func Start(to telegraf.Accumulator) *Feed {
	f := &Feed{batches: make(chan []telegraf.Metric)}
	f.adding.Go(func() {
		for batch := range f.batches {
			for _, m := range batch {
				to.AddMetric(m)
			}
		}
	})
	return f
}

// grace is how long Add waits for Telegraf after the end of its context: for the last points.
const grace = time.Second

// Add passes points, which it copies. It waits until Telegraf has taken those of the calls before; after the end of ctx and
// the grace period it drops them.
func (f *Feed) Add(ctx context.Context, points []point.Point) {
	if len(points) == 0 {
		return
	}
	batch := make([]telegraf.Metric, len(points))
	for i := range points {
		batch[i] = Metric(&points[i])
	}
	select {
	case f.batches <- batch:
		return
	case <-ctx.Done():
	}
	select {
	case f.batches <- batch:
	case <-time.After(grace):
	}
}

// Close waits until Telegraf has taken all points. There must be no later Add.
func (f *Feed) Close() {
	close(f.batches)
	f.adding.Wait()
}

// Metric is a point as a metric of Telegraf, with the same names, types and time.
func Metric(p *point.Point) telegraf.Metric {
	m := metric.New(p.Measurement, nil, nil, p.At.Time())
	for _, t := range p.Tags {
		m.AddTag(t.Key, point.CleanTag(t.Value))
	}
	for _, f := range p.Fields {
		m.AddField(f.Key, f.Value.Interface())
	}
	return m
}
