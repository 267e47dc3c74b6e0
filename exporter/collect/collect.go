// Package collect makes points of all that an agent measures: its series at an interval, and the raw samples of the
// recorder when they are recorded. Each output has a collector of its own.
package collect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/output"
	"oneway.example/exporter/point"
	"oneway.example/exporter/record"
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

// Queues of raw samples, in samples. A transfer of a run, a connection, a report and a run are one sample each.
const (
	rowsQueue    = 64
	flowsQueue   = 512
	resultsQueue = 64
	ringsQueue   = 32
	pointsQueue  = 256
)

// takeInterval is how often the queues are emptied.
const takeInterval = 500 * time.Millisecond

// Run collects until ctx ends. emit receives the points in batches, those of one source in the order of time; they are valid
// during the call, which must not block for long: raw samples that do not fit into the queues meanwhile are dropped and
// counted.
func Run(ctx context.Context, env output.Env, o Options, emit func([]point.Point)) error {
	if err := CheckTags(o.Tags); err != nil {
		return err
	}
	c := newCollector(env, o, emit)
	defer c.close()
	takes := time.NewTicker(takeInterval)
	defer takes.Stop()
	next := c.nextSeries(time.Now())
	due := time.NewTimer(time.Until(next))
	defer due.Stop()
	if o.Interval <= 0 || env.Series == nil {
		due.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			c.take()
			return nil
		case <-takes.C:
			c.take()
		case now := <-due.C:
			c.series(next)
			next = c.nextSeries(now)
			due.Reset(time.Until(next))
		}
	}
}

// CheckTags checks the tags that are added to every point: they have a key and a value, and no key of the schema.
func CheckTags(tags []point.Tag) error {
	for i, t := range tags {
		switch {
		case t.Key == "" || t.Value == "":
			return fmt.Errorf("collect: tag %q with value %q, want a key and a value", t.Key, t.Value)
		case point.Reserved(t.Key):
			return fmt.Errorf("collect: tag %q is a tag or field of this program, want another key", t.Key)
		case slices.ContainsFunc(tags[:i], func(other point.Tag) bool { return other.Key == t.Key }):
			return fmt.Errorf("collect: tag %q twice, want it once", t.Key)
		}
	}
	return nil
}

// collector has the listeners of an output.
type collector struct {
	env     output.Env
	options Options
	raw     *point.Raw
	batch   batch
	missed  metric.Series

	rows    queue[record.Rows]
	flows   queue[record.Flow]
	results queue[record.Result]
	rings   queue[record.Ring]
	points  queue[record.Point]
}

func newCollector(env output.Env, o Options, emit func([]point.Point)) *collector {
	c := &collector{
		env: env, options: o, raw: point.NewRaw(), batch: newBatch(o.Tags, emit),
		missed: env.Sink.Series(metric.SamplesDropped, env.Name),
	}
	if r := env.Recorder; r != nil {
		c.rows, c.flows = listen(r.Rows(), rowsQueue), listen(r.Flows(), flowsQueue)
		c.results, c.rings, c.points = listen(r.Results(), resultsQueue), listen(r.Rings(), ringsQueue), listen(r.Points(), pointsQueue)
	}
	return c
}

func (c *collector) close() {
	c.rows.close()
	c.flows.close()
	c.results.close()
	c.rings.close()
	c.points.close()
	c.missed.Close()
}

// nextSeries is the next multiple of the interval since 1970: all agents have their series at the same times.
func (c *collector) nextSeries(now time.Time) time.Time {
	i := max(c.options.Interval, time.Second)
	return time.Unix(0, now.UnixNano()/int64(i)*int64(i)+int64(i))
}

// series emits the points of all series with the time at which they were due.
func (c *collector) series(at time.Time) {
	if err := c.env.Series(instant.FromTime(at), c.batch.add); err != nil {
		c.env.Log.Warn("Series not collected", "err", err)
	}
	c.batch.flush()
}

// take empties the queues.
func (c *collector) take() {
	thin := point.Thin{First: c.options.FirstRows, Most: c.options.MaxRows}
	missed := c.results.each(func(v *record.Result) { c.raw.Result(v, c.batch.add) })
	missed += c.rows.each(func(v *record.Rows) { c.raw.Rows(v, thin, c.batch.add) })
	missed += c.flows.each(func(v *record.Flow) { c.raw.Flow(v, c.batch.add) })
	missed += c.rings.each(func(v *record.Ring) { c.raw.Ring(v, c.batch.add) })
	missed += c.points.each(func(v *record.Point) { c.raw.Position(v, c.batch.add) })
	c.batch.flush()
	if missed > 0 {
		c.missed.Add(float64(missed))
	}
}

// queue is a listener with the memory of one batch. The zero value is empty.
type queue[T any] struct {
	from *record.Listener[T]
	into []T
}

func listen[T any](s *record.Stream[T], samples int) queue[T] {
	return queue[T]{s.Listen(samples), make([]T, 16)}
}

// each calls f with every queued sample, and returns the number of missed ones.
func (q *queue[T]) each(f func(*T)) (missed uint64) {
	for n := len(q.into); n > 0 && n == len(q.into); {
		var lost uint64
		n, lost = q.from.Take(q.into)
		missed += lost
		for i := range q.into[:n] {
			f(&q.into[i])
		}
		clear(q.into[:n]) // the rows are not needed any more
	}
	return missed
}

func (q *queue[T]) close() {
	if q.from != nil {
		q.from.Close()
	}
}

// batchPoints is the largest number of points of a call of emit.
const batchPoints = 1000

// batch gathers copies of points, with the tags of all points.
type batch struct {
	tags   []point.Tag // sorted
	emit   func([]point.Point)
	points []point.Point
	used   int
}

func newBatch(tags []point.Tag, emit func([]point.Point)) batch {
	tags = slices.Clone(tags)
	slices.SortFunc(tags, func(a, b point.Tag) int { return cmp.Compare(a.Key, b.Key) })
	return batch{tags: tags, emit: emit}
}

// add adds a copy of p.
func (b *batch) add(p *point.Point) {
	if b.used == len(b.points) {
		b.points = append(b.points, point.Point{})
	}
	to := &b.points[b.used]
	b.used++
	to.Measurement, to.At = p.Measurement, p.At
	to.Tags = merge(to.Tags[:0], p.Tags, b.tags)
	to.Fields = append(to.Fields[:0], p.Fields...)
	if b.used == batchPoints {
		b.flush()
	}
}

// merge appends both lists of tags in the order of keys.
func merge(to, some, others []point.Tag) []point.Tag {
	for _, t := range some {
		for len(others) > 0 && others[0].Key < t.Key {
			to, others = append(to, others[0]), others[1:]
		}
		to = append(to, t)
	}
	return append(to, others...)
}

func (b *batch) flush() {
	if b.used > 0 {
		b.emit(b.points[:b.used])
		b.used = 0
	}
}
