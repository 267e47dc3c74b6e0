// Package slareport computes the figures of service agreements from the series of the agents in Prometheus: availability, loss and
// delay of a path by month, week or day. exporter/doc/report.md defines them, with a query for each.
//
// A period is evaluated in parts of a day at most, so that each query is cheap for the server: counts are added, histograms too,
// and quantiles are those of the sum.
package slareport

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
)

// Options of a report.
type Options struct {
	// Path is the path's name; Probe and Instance select one of several series of it, empty: there is one.
	Path, Probe, Instance string
	// From and To limit the report, without To; their location is that of the periods.
	From, To time.Time
	By       By
	// Interval is the length of an interval of availability: at least the scrape interval.
	Interval time.Duration
}

// Row has the figures of a period. A pointer is nil for an unknown value.
type Row struct {
	Period
	// Measured is the time of intervals with data, Up of those with a reply too; NoData is the rest of the period.
	Measured, Up, NoData time.Duration
	Availability         *float64
	// Outages are runs of measured intervals without a reply; intervals without data end none.
	Outages   int
	Longest   time.Duration
	RoundTrip *float64 // loss
	Ways      [2]Way   // by sample.Direction
}

// Way is one direction of a row.
type Way struct {
	// Loss and LossHighest are the loss ratio if none and all of the undecided packets were lost in the direction.
	Loss          *float64
	LossHighest   *float64
	P50, P95, P99 *Quantile
	Max           *float64
	Withheld      *float64 // share of the measured delays that were not reported
	LowConfidence *float64 // share of the reported delays that are smaller than their error bound
	Delays        float64  // number of reported delays
	counts        counts   // of all parts
	histogram     histogram
}

// counts are those of a direction.
type counts struct {
	sent         float64
	lost, of     float64 // lost packets of those that reached a host and were not dropped there, where the direction of a loss is known
	undecided    float64 // of these, packets whose outcome stays unknown
	invalid, low float64 // of parts that count them
	counting     float64 // reported delays of these parts
}

// instance is the label of the agent in Prometheus.
const instance = model.InstanceLabel

// longestPart is the longest time of one query.
const longestPart = 24 * time.Hour

// Make makes the rows of a report.
func Make(ctx context.Context, s *Server, o Options, now time.Time) ([]Row, error) {
	if !o.From.Before(o.To) {
		return nil, fmt.Errorf("slareport: --from %s is not before --to %s", o.From.Format(time.DateTime), o.To.Format(time.DateTime))
	}
	if o.From.After(now) {
		return nil, fmt.Errorf("slareport: --from %s is in the future; it is %s now", o.From.Format(time.DateTime), now.In(o.From.Location()).Format(time.DateTime))
	}
	c := s.connect()
	match, err := o.find(ctx, c, now)
	if err != nil {
		return nil, err
	}
	var rows []Row
	measured := false
	for _, p := range o.By.periods(o.From, o.To) {
		if p.From.After(now) {
			break
		}
		r := Row{Period: p}
		if p.To.After(now) {
			r.To, r.Partial = now.Truncate(time.Second), true
		}
		if err := r.fill(ctx, c, match, o.Interval); err != nil {
			return nil, err
		}
		measured = measured || r.Measured > 0
		rows = append(rows, r)
	}
	if !measured {
		return nil, fmt.Errorf("slareport: Prometheus at %s has no data of path %q from %s to %s; the time may be before its retention (--storage.tsdb.retention.time)",
			c.server.name(), o.Path, o.From.Format(time.DateTime), o.To.Format(time.DateTime))
	}
	return rows, nil
}

// find returns the label matchers of the one probe of the path.
func (o *Options) find(ctx context.Context, c *client, now time.Time) (string, error) {
	matchers := []string{metric.Path + "=" + strconv.Quote(o.Path)}
	for _, l := range [][2]string{{metric.Probe, o.Probe}, {instance, o.Instance}} {
		if l[1] != "" {
			matchers = append(matchers, l[0]+"="+strconv.Quote(l[1]))
		}
	}
	match := strings.Join(matchers, ",")
	to := o.To
	if to.After(now) {
		to = now
	}
	all, err := c.series(ctx, metric.ProbeUp.Name+"{"+match+"}", o.From, to)
	if err != nil {
		return "", err
	}
	switch len(all) {
	case 1:
		return match, nil
	case 0:
		return "", o.missing(ctx, c)
	}
	var words []string
	for _, l := range all {
		words = append(words, fmt.Sprintf("--probe=%s --instance=%s", l[metric.Probe], l[instance]))
	}
	slices.Sort(words)
	if words = slices.Compact(words); len(words) == 1 {
		return match, nil // several jobs of one agent: shares and quantiles are the same
	}
	return "", fmt.Errorf("slareport: path %q has %d series; select one of: %s", o.Path, len(words), strings.Join(words, ", "))
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
func (o *Options) missing(ctx context.Context, c *client) error {
	known, err := c.values(ctx, metric.Path, metric.ProbeUp.Name)
	if err != nil {
		return err
	}
	if slices.Contains(known, o.Path) {
		return fmt.Errorf("slareport: Prometheus at %s knows path %q, but has no data of it from %s to %s, with the given probe and instance; the time may be before its retention (--storage.tsdb.retention.time)",
			c.server.name(), o.Path, o.From.Format(time.DateTime), o.To.Format(time.DateTime))
	}
	return &PathError{o.Path, known, c.server.name()}
}

// fill evaluates the period.
func (r *Row) fill(ctx context.Context, c *client, match string, interval time.Duration) error {
	if err := r.availability(ctx, c, match, interval); err != nil {
		return err
	}
	trips := 0.0
	for d := range r.Ways {
		r.Ways[d].histogram = histogram{}
	}
	for from := r.From; from.Before(r.To); {
		to := Day.next(Day.begin(from))
		if to.Sub(from) > longestPart || to.After(r.To) {
			to = from.Add(min(longestPart, r.To.Sub(from)))
		}
		p := part{ctx: ctx, client: c, match: match, to: to, length: to.Sub(from)}
		p.add(&r.Ways)
		for _, n := range byDirection(p.at("increase(" + p.series(metric.RoundTripLost.Name) + ")")) {
			trips += n
		}
		if p.err != nil {
			return p.err
		}
		from = to
	}
	for d := range r.Ways {
		r.Ways[d].conclude()
	}
	if sent := r.Ways[sample.Forward].counts.sent; sent > 0 {
		r.RoundTrip = new(min(1, trips/sent))
	}
	return nil
}

// availability counts intervals: those with data, and of these those with a reply.
func (r *Row) availability(ctx context.Context, c *client, match string, interval time.Duration) error {
	outage := time.Duration(0)
	for from := r.From; from.Before(r.To); {
		to := from.Add(min(longestPart, r.To.Sub(from)))
		// The value at the end of an interval is that of the interval. Prometheus 2 includes the begin of a range: a sample at the
		// border of two intervals would count in both.
		if from.Add(interval).After(to) {
			break // the rest is no interval
		}
		up := fmt.Sprintf("max(max_over_time(%s{%s}[%dms]))", metric.ProbeUp.Name, match, interval.Milliseconds()-1)
		all, err := c.through(ctx, up, from.Add(interval), to, interval)
		if err != nil {
			return err
		}
		for _, one := range all {
			for _, v := range one.Values {
				if math.IsNaN(float64(v.Value)) {
					continue // neither up nor down
				}
				r.Measured += interval
				if v.Value > 0 {
					r.Up += interval
					outage = 0
					continue
				}
				if outage == 0 {
					r.Outages++
				}
				outage += interval
				r.Longest = max(r.Longest, outage)
			}
		}
		from = to
	}
	r.NoData = max(0, r.To.Sub(r.From)-r.Measured)
	if r.Measured > 0 {
		r.Availability = new(r.Up.Seconds() / r.Measured.Seconds())
	}
	return nil
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) + "s" }

// part is a time of at most a day.
type part struct {
	ctx    context.Context
	client *client
	match  string
	to     time.Time
	length time.Duration
	err    error // the first
}

// series selects a series of the path over the part.
func (p *part) series(name string) string {
	return name + "{" + p.match + "}[" + seconds(p.length) + "]"
}

// at evaluates a query at the end of the part. After an error it has no result.
func (p *part) at(query string) model.Vector {
	if p.err != nil {
		return nil
	}
	all, err := p.client.at(p.ctx, query, p.to)
	p.err = err
	return all
}

// increases are the increases of a counter by direction.
func (p *part) increases(d *metric.Desc) map[string]float64 {
	return byDirection(p.at("sum by (direction) (increase(" + p.series(d.Name) + "))"))
}

// add adds the counts of the part.
func (p *part) add(ways *[2]Way) {
	sent, lost, drop := p.increases(metric.PacketsSent), p.increases(metric.PacketsLost), p.increases(metric.PacketsHostDropped)
	undecided := p.increases(metric.PacketsUndecided)
	invalid, low := p.increases(metric.DelayInvalid), p.increases(metric.DelayLowConfidence)
	// Both begin with their first event; profile slim has neither, nor the interval.
	counting := len(p.at("count(count_over_time("+p.series(metric.ProbeInterval.Name)+"))")) > 0
	delays := p.delays()
	for d := range ways {
		name, w := sample.Direction(d).String(), &ways[d]
		w.counts.sent += sent[name]
		if n, known := lost[name]; known { // else the reflector does not number its replies
			w.counts.lost += n
			w.counts.undecided += undecided[name]
			w.counts.of += sent[name] - drop[name]
		}
		for limits, n := range delays[name] {
			w.histogram.add(bucket{limits[0], limits[1], n})
		}
		if counting {
			w.counts.invalid += invalid[name]
			w.counts.low += low[name]
			w.counts.counting += delays[name].count()
		}
	}
	for name, v := range byDirection(p.at("max by (direction) (max_over_time(" + p.series(metric.DelayMax.Name) + "))")) {
		for d := range ways {
			if w := &ways[d]; sample.Direction(d).String() == name && (w.Max == nil || v > *w.Max) {
				w.Max = new(v)
			}
		}
	}
}

// delays are the delays of the part by direction, from native histograms, else from classic ones.
func (p *part) delays() map[string]histogram {
	all := map[string]histogram{}
	for _, one := range p.at("sum by (direction) (increase(" + p.series(metric.Delay.Name) + "))") {
		if one.Histogram != nil && len(one.Histogram.Buckets) > 0 {
			h := histogram{}
			h.addNative(one.Histogram)
			all[string(one.Metric[metric.Direction])] = h
		}
	}
	classic := map[string]map[string]float64{}
	for _, one := range p.at("sum by (direction, le) (increase(" + p.series(metric.Delay.Name+"_bucket") + "))") {
		d := string(one.Metric[metric.Direction])
		if classic[d] == nil {
			classic[d] = map[string]float64{}
		}
		classic[d][string(one.Metric[model.BucketLabel])] = float64(one.Value)
	}
	for d, counts := range classic {
		if all[d] == nil {
			all[d] = histogram{}
			all[d].addClassic(counts)
		}
	}
	return all
}

// conclude computes the shares and quantiles.
func (w *Way) conclude() {
	w.Delays = w.histogram.count()
	share := func(of, all float64) *float64 {
		if all <= 0 {
			return nil
		}
		return new(min(1, max(0, of/all)))
	}
	w.Loss = share(w.counts.lost, w.counts.of)
	w.LossHighest = share(w.counts.lost+w.counts.undecided, w.counts.of)
	w.Withheld = share(w.counts.invalid, w.counts.invalid+w.counts.counting)
	w.LowConfidence = share(w.counts.low, w.counts.counting)
	w.P50, w.P95, w.P99 = w.histogram.quantile(0.5), w.histogram.quantile(0.95), w.histogram.quantile(0.99)
}
