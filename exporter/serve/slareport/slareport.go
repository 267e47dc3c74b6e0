// Package slareport computes the figures of service agreements from the series of the agents in Prometheus: availability, loss and
// delay of a path by month, week or day. exporter/doc/report.md defines them, with a query for each.
//
// A period is evaluated in parts of a day at most, so that each query is cheap for the server: counts are added, histograms too,
// and quantiles are those of the sum.
package slareport

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/serve/promapi"
)

// Options of a report.
type Options struct {
	// Path is the path's name; Probe and Instance select one of several series of it, empty: there is one. Without a path the report has
	// all paths, with each of their probes.
	Path, Probe, Instance string
	// From and To limit the report, without To; their location is that of the periods.
	From, To time.Time
	By       By
	// WithLoadTests includes the times at which load tests affected the path.
	WithLoadTests bool
	// Interval is the length of an interval of availability: at least the scrape interval.
	Interval time.Duration
	// Progress takes the number of rows that are done, of all. It may be called by several goroutines. nil: nobody wants it.
	Progress func(done, all int)
}

// Row has the figures of a period. A pointer is nil for an unknown value.
type Row struct {
	Source
	Period
	// Measured is the time of intervals with data, Up of those with a reply too; NoData is the rest of the period. LoadTest is the time of
	// the intervals that load tests affected; Measured includes it with Options.WithLoadTests only. Maintenance is the time of the intervals of planned work: no other
	// figure includes it.
	Measured, Up, NoData, LoadTest, Maintenance time.Duration
	Availability                                *float64
	// Outages are runs of measured intervals without a reply; intervals without data end none.
	Outages   int
	Longest   time.Duration
	RoundTrip *float64 // loss
	Ways      [2]Way   // by sample.Direction
	trips     struct{ lost, of float64 }
	// before is the number of packets that were sent in an outage before the period, or while a load test affected the path, and had no
	// outcome then; after of those that have none at the end of the period, in an outage.
	before, after float64
	ends          []time.Time // of the outages
	told          time.Time   // end of the last outage whose losses are in counts.told
}

// Way is one direction of a row.
type Way struct {
	// Loss and LossHighest are the loss ratio if none and all of the packets without an outcome were lost in the direction: the undecided
	// ones, and those that have none at the end of the period, as in an outage. Losses that may be of Row.before are in LossHighest only.
	Loss          *float64
	LossHighest   *float64
	P50, P95, P99 *Quantile
	Max           *float64
	Withheld      *float64 // share of the measured delays that were not reported
	LowConfidence *float64 // share of the reported delays that are smaller than their error bound
	Negative      *float64 // share of the reported delays that are negative by more than their error bound
	Delays        float64  // number of reported delays
	counts        counts   // of all parts
	histogram     histogram
}

// counts are those of a direction.
type counts struct {
	lost, of     float64 // lost packets of those that were received, lost or undecided, where the direction of a loss is known
	undecided    float64 // of these, packets whose outcome stays unknown
	outstanding  float64 // packets that were sent and have no outcome yet, since before the period
	told         float64 // lost packets that may be of Row.before
	directed     bool    // losses have a direction
	invalid, low float64 // of parts that count them
	counting     float64 // reported delays of these parts
	negative     float64 // delays that are negative by more than their error bound
	signed       float64 // reported delays of parts that count these
	// unmeasured is the most packets that arrived and whose delay is not among the reported ones: their reply was lost or is on its way,
	// or they have no valid error bound.
	unmeasured float64
}

// instance is the label of the agent in Prometheus.
const instance = model.InstanceLabel

// longestPart is the longest time of one query.
const longestPart = 24 * time.Hour

// Make makes the rows of a report.
func Make(ctx context.Context, s *promapi.Server, o Options, now time.Time) ([]Row, error) {
	if !o.From.Before(o.To) {
		return nil, fmt.Errorf("slareport: --from %s is not before --to %s", o.From.Format(time.DateTime), o.To.Format(time.DateTime))
	}
	if o.From.After(now) {
		return nil, fmt.Errorf("slareport: --from %s is in the future; it is %s now", o.From.Format(time.DateTime), now.In(o.From.Location()).Format(time.DateTime))
	}
	c := s.Connect()
	sources, err := o.find(ctx, c, now)
	if err != nil {
		return nil, err
	}
	rows, err := o.rows(ctx, c, sources, now)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(rows, func(r Row) bool { return r.Measured+r.LoadTest+r.Maintenance > 0 }) {
		return nil, fmt.Errorf("slareport: Prometheus at %s has no data of %s from %s to %s; the time may be before its retention (--storage.tsdb.retention.time)",
			c.Name(), o.subject(), o.From.Format(time.DateTime), o.To.Format(time.DateTime))
	}
	return rows, nil
}

// rows fills the rows of the sources, in their order.
func (o *Options) rows(ctx context.Context, c *promapi.Client, sources []Source, now time.Time) ([]Row, error) {
	err := inParallel(ctx, len(sources), func(ctx context.Context, i int) error { return sources[i].describe(ctx, c, *o, now) })
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, one := range sources {
		for _, p := range o.By.periods(o.From, o.To) {
			if p.From.After(now) {
				break
			}
			r := Row{Source: one, Period: p}
			if p.To.After(now) {
				r.To, r.Partial = now.Truncate(time.Second), true
			}
			rows = append(rows, r)
		}
	}
	var done atomic.Int64
	return rows, inParallel(ctx, len(rows), func(ctx context.Context, i int) error {
		err := rows[i].fill(ctx, c, *o)
		if n := int(done.Add(1)); o.Progress != nil {
			o.Progress(n, len(rows))
		}
		return err
	})
}

// inParallel calls do with 0 to n - 1, several at a time; the first error ends all.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(promapi.Concurrent)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// PathError is a path that Prometheus does not know.
type PathError struct {
	Path string
	// Known are the paths that it knows.
	Known []string
	url   string
}

// Error names the path.
func (e *PathError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("slareport: Prometheus at %s has no series of oneway (%s); is the agent one of its targets?", e.url, metric.ProbeUp.Name)
	}
	return fmt.Sprintf("slareport: Prometheus at %s has no path %q", e.url, e.Path)
}

// missing is why there is no series.
func (o *Options) missing(ctx context.Context, c *promapi.Client) error {
	known, err := c.Values(ctx, metric.Path, metric.ProbeUp.Name)
	if err != nil {
		return err
	}
	if o.Path == "" && len(known) > 0 || slices.Contains(known, o.Path) {
		return fmt.Errorf("slareport: Prometheus at %s knows %s, but has no data of it from %s to %s, with the given probe and instance; the time may be before its retention (--storage.tsdb.retention.time)",
			c.Name(), o.subject(), o.From.Format(time.DateTime), o.To.Format(time.DateTime))
	}
	return &PathError{o.Path, known, c.Name()}
}

// fill evaluates the period.
func (r *Row) fill(ctx context.Context, c *promapi.Client, o Options) error {
	tested, err := r.loadTests(ctx, c, o.Interval)
	if err != nil {
		return err
	}
	planned, err := r.maintenance(ctx, c, o.Interval)
	if err != nil {
		return err
	}
	for end := range planned {
		delete(tested, end)
	}
	r.LoadTest, r.Maintenance = time.Duration(len(tested))*o.Interval, time.Duration(len(planned))*o.Interval
	if o.WithLoadTests {
		tested = map[int64]bool{}
	}
	maps.Copy(tested, planned)
	if err := r.availability(ctx, c, o.Interval, tested); err != nil {
		return err
	}
	for d := range r.Ways {
		r.Ways[d].histogram = histogram{}
	}
	for _, s := range r.outside(tested, o.Interval) {
		if err := r.begun(ctx, c, s.From, o.Interval); err != nil {
			return err
		}
		for from := s.From; from.Before(s.To); {
			to := Day.next(Day.begin(from))
			if to.Sub(from) > longestPart || to.After(s.To) {
				to = from.Add(min(longestPart, s.To.Sub(from)))
			}
			p := part{client: c, match: r.match(), to: to, length: to.Sub(from)}
			if err := p.add(ctx, r); err != nil {
				return err
			}
			from = to
		}
	}
	waiting, err := r.waiting(ctx, c, r.To)
	if err != nil {
		return err
	}
	r.after = waiting[unreachable][sample.Forward.String()]
	for d := range r.Ways {
		r.Ways[d].conclude(r.before)
	}
	if forward := &r.Ways[sample.Forward]; forward.counts.directed { // each of before has its outcome in the period, or is one of after
		forward.Loss = share(forward.counts.lost-forward.counts.told, forward.counts.of-r.before+r.after)
	}
	r.highest()
	if r.trips.of > 0 {
		r.RoundTrip = new(min(1, r.trips.lost/r.trips.of))
	}
	return nil
}

// availability counts intervals that neither a load test nor planned work affected: those with data, and those with a reply too.
func (r *Row) availability(ctx context.Context, c *promapi.Client, interval time.Duration, tested map[int64]bool) error {
	outage := time.Duration(0)
	up := fmt.Sprintf("max(max_over_time(%s{%s}[%dms]))", metric.ProbeUp.Name, r.match(), interval.Milliseconds()-1)
	err := r.intervals(ctx, c, up, interval, func(end, value float64) {
		if tested[int64(end)] {
			return
		}
		r.Measured += interval
		if value > 0 {
			r.Up += interval
			if outage > 0 {
				r.ends = append(r.ends, time.Unix(int64(end), 0))
			}
			outage = 0
			return
		}
		if outage == 0 {
			r.Outages++
		}
		outage += interval
		r.Longest = max(r.Longest, outage)
	})
	if err != nil {
		return err
	}
	r.NoData = max(0, r.To.Sub(r.From)-r.Measured-time.Duration(len(tested))*interval)
	if r.Measured > 0 {
		r.Availability = new(r.Up.Seconds() / r.Measured.Seconds())
	}
	return nil
}

// share is a ratio, 0..1; nil: of nothing.
func share(of, all float64) *float64 {
	if all <= 0 {
		return nil
	}
	return new(min(1, max(0, of/all)))
}

// highest computes the highest loss ratios. A packet without a reply was lost forward, or in reverse after it was reflected.
func (r *Row) highest() {
	forward, reverse := r.Ways[sample.Forward].counts, r.Ways[sample.Reverse].counts
	forward.outstanding, reverse.outstanding = max(0, forward.outstanding), max(0, reverse.outstanding)
	unheard := forward.undecided + forward.outstanding
	more := unheard + reverse.outstanding
	lost := r.before - more - reverse.undecided // at least so many of them were told as lost, in either direction
	if forward.directed {
		other := min(forward.told, max(0, lost-reverse.told))
		r.Ways[sample.Forward].LossHighest = share(forward.lost-other+unheard, forward.of-r.before+forward.outstanding)
	}
	if reverse.directed {
		other := min(reverse.told, max(0, lost-forward.told))
		r.Ways[sample.Reverse].LossHighest = share(reverse.lost-other+reverse.undecided+more, reverse.of-other+more)
	}
}

// conclude computes the shares and quantiles. So many of the packets are of another time.
func (w *Way) conclude(before float64) {
	w.Delays = w.histogram.count()
	w.counts.told = min(w.counts.told, w.counts.lost, before)
	w.Loss = share(w.counts.lost-w.counts.told, w.counts.of-w.counts.told)
	w.Withheld = share(w.counts.invalid, w.counts.invalid+w.counts.counting)
	w.LowConfidence = share(w.counts.low, w.counts.counting)
	w.Negative = share(w.counts.negative, w.counts.signed)
	unknown := max(0, w.counts.unmeasured)
	w.P50, w.P95, w.P99 = w.histogram.quantile(0.5, unknown), w.histogram.quantile(0.95, unknown), w.histogram.quantile(0.99, unknown)
}
