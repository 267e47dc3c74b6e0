// Package collect makes points of all that an agent measures: its series at an interval, and the raw samples of the
// recorder when they are recorded. Each output has a collector of its own.
package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/hours"
	"oneway.example/exporter/output/point"
)

// Options select what is collected.
type Options struct {
	// Interval of the series; 0: no series.
	Interval time.Duration
	// Tags are added to every point; a label of its path precedes a tag of that name.
	Tags []point.Tag
	// FirstRows is the time from the begin of a transfer of which every packet is collected; later ones are thinned out so that a
	// transfer has at most MaxRows points.
	FirstRows time.Duration
	MaxRows   int
	// EmitWaits is for an emit that may wait for long: the series are copied as a whole before they are emitted, since other readers
	// of the series wait while they are read.
	EmitWaits bool
}

// DefaultOptions are the settings of an output that has none of its own.
func DefaultOptions() Options {
	return Options{Interval: 10 * time.Second, FirstRows: 5 * time.Second, MaxRows: 20_000}
}

// Limits of options.
const (
	MinInterval  = time.Second
	MaxInterval  = time.Hour
	MaxFirstRows = time.Hour
	MaxMaxRows   = 10_000_000
)

// Check reports values beyond their limits, by the keys interval, first_rows and max_rows; CheckTags has those of tags.
func (o *Options) Check() error {
	return errors.Join(
		option.Between("interval", o.Interval, MinInterval, MaxInterval),
		option.Between("first_rows", o.FirstRows, 0, MaxFirstRows),
		option.Between("max_rows", o.MaxRows, 0, MaxMaxRows),
	)
}

// takeInterval is how often the queues are emptied.
const takeInterval = 500 * time.Millisecond

// Run collects until ctx ends. emit receives the points in batches, those of one source in the order of time; they are valid
// during the call, which must not block for long: raw samples that do not fit into the queues meanwhile are dropped and
// counted.
func Run(ctx context.Context, env output.Env, o Options, emit func([]point.Point)) error {
	if err := CheckTags(env, o.Tags); err != nil {
		return err
	}
	c := newCollector(env, o, emit)
	defer c.close()
	takes := time.NewTicker(takeInterval)
	defer takes.Stop()
	due := time.NewTimer(c.untilDue())
	defer due.Stop()
	if o.Interval <= 0 || env.Series == nil {
		due.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			c.take()
			c.hours.Flush()
			c.batch.flush()
			return nil
		case <-takes.C:
			c.take()
		case <-due.C:
			c.series(time.Now())
			due.Reset(c.untilDue())
		}
	}
}

// CheckTags checks the tags that are added to every point: they have a key and a value, and no key of the schema of env or
// one that the line protocol does not have.
func CheckTags(env output.Env, tags []point.Tag) error {
	for i, t := range tags {
		switch {
		case t.Key == "" || t.Value == "":
			return fmt.Errorf("collect: tag %q with value %q, want a key and a value", t.Key, t.Value)
		case point.CleanTag(t.Key) != t.Key:
			return fmt.Errorf("collect: tag %q cannot be written, want a key without control characters, of at most %d bytes", t.Key, point.MaxTagBytes)
		case point.Reserved(env.Groups, env.Tables, t.Key):
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
	hours   *hours.Hours
	labels  any // version of the labels of paths
	missed  metric.Series

	last, newest instant.Time // of the series
	stepsBack    instant.Time // of the clock, a nanosecond each

	rows    queue[record.Rows]
	results queue[record.Result]
	tables  queue[record.Table]
}

func newCollector(env output.Env, o Options, emit func([]point.Point)) *collector {
	c := &collector{
		env: env, options: o, raw: point.NewRaw(env.Groups), batch: newBatch(point.NewTagger(o.Tags, env.Labels), emit),
		missed: env.Sink.Series(metric.SamplesDropped, env.Name),
	}
	c.hours, c.labels = hours.New(o.Interval, c.batch.add), env.Labels.Version()
	if r := env.Recorder; r != nil {
		c.rows, c.results = newQueue(r.Rows().Listen(rowsQueue)), newQueue(r.Results().Listen(resultsQueue))
		c.tables = newQueue(r.Tables().ListenWeighed(tablesQueue, tableRows, rowsOf))
	}
	return c
}

func (c *collector) close() {
	c.rows.close()
	c.results.close()
	c.tables.close()
	c.missed.Close()
}

// interval is a duration of series; it is not zero.
func (c *collector) interval() int64 { return max(int64(c.options.Interval), int64(MinInterval)) }

// untilDue is the time to the next multiple of the interval since 1970: all agents have their series at the same times.
func (c *collector) untilDue() time.Duration {
	return time.Duration(c.interval() - time.Now().UnixNano()%c.interval())
}

// series emits the points of all series, with the multiple of the interval that is nearest to the present time. They are left
// out if the last ones had this time. A clock that was stepped back has former times again, at which a store would replace the
// points: until it has passed them they are 1 ns later for each such step.
func (c *collector) series(now time.Time) {
	i := c.interval()
	at := instant.Time((now.UnixNano() + i/2) / i * i)
	if at == c.last {
		return
	}
	if at < c.last {
		c.stepsBack++
	}
	if c.last = at; at > c.newest {
		c.newest = at
	} else {
		at += c.stepsBack
	}
	c.batch.hold = c.options.EmitWaits
	if labels := c.env.Labels.Version(); labels != c.labels {
		c.labels = labels
		c.hours.Cut(at)
	}
	c.hours.Begin(at)
	if err := c.env.Series(at, c.point); err != nil {
		c.env.Log.Warn("Series not collected", "err", err)
	}
	c.hours.End()
	c.batch.hold = false
	c.batch.flush()
}

// point adds a point of a series, for itself and for its hour.
func (c *collector) point(p *point.Point) {
	c.hours.Add(p)
	c.batch.add(p)
}

// take empties the queues.
func (c *collector) take() {
	thin := point.Thin{First: c.options.FirstRows, Most: c.options.MaxRows}
	missed := c.results.each(func(v *record.Result) { c.raw.Result(v, c.batch.add) })
	missed += c.rows.each(func(v *record.Rows) { c.raw.Rows(v, thin, c.batch.add) })
	missed += c.tables.each(func(v *record.Table) { c.raw.Table(v, c.batch.add) })
	c.batch.flush()
	if missed > 0 {
		c.missed.Add(float64(missed))
	}
}
