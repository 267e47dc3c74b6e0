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
	Loss          *float64
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
	invalid, low float64 // of parts that count them
	counting     float64 // reported delays of these parts
}

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
	match, err := o.find(ctx, s, now)
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
		if err := r.fill(ctx, s, match, o.Interval); err != nil {
			return nil, err
		}
		measured = measured || r.Measured > 0
		rows = append(rows, r)
	}
	if !measured {
		return nil, fmt.Errorf("slareport: Prometheus at %s has no data of path %q from %s to %s; the time may be before its retention (--storage.tsdb.retention.time)",
			s.name(), o.Path, o.From.Format(time.DateTime), o.To.Format(time.DateTime))
	}
	return rows, nil
}

// find returns the label matchers of the one probe of the path.
func (o *Options) find(ctx context.Context, s *Server, now time.Time) (string, error) {
	matchers := []string{"path=" + strconv.Quote(o.Path)}
	for _, l := range [][2]string{{"probe", o.Probe}, {"instance", o.Instance}} {
		if l[1] != "" {
			matchers = append(matchers, l[0]+"="+strconv.Quote(l[1]))
		}
	}
	match := strings.Join(matchers, ",")
	to := o.To
	if to.After(now) {
		to = now
	}
	all, err := s.labels(ctx, "oneway_probe_up{"+match+"}", o.From, to)
	if err != nil {
		return "", err
	}
	switch len(all) {
	case 1:
		return match, nil
	case 0:
		return "", o.missing(ctx, s)
	}
	var words []string
	for _, l := range all {
		words = append(words, fmt.Sprintf("--probe=%s --instance=%s", l["probe"], l["instance"]))
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
		return fmt.Sprintf("slareport: Prometheus at %s has no series of oneway (oneway_probe_up); is the agent one of its targets?", e.url)
	}
	return fmt.Sprintf("slareport: Prometheus at %s has no path %q", e.url, e.Path)
}

// missing is why there is no series.
func (o *Options) missing(ctx context.Context, s *Server) error {
	known, err := s.values(ctx, "path", "oneway_probe_up")
	if err != nil {
		return err
	}
	if slices.Contains(known, o.Path) {
		return fmt.Errorf("slareport: Prometheus at %s knows path %q, but has no data of it from %s to %s, with the given probe and instance; the time may be before its retention (--storage.tsdb.retention.time)",
			s.name(), o.Path, o.From.Format(time.DateTime), o.To.Format(time.DateTime))
	}
	return &PathError{o.Path, known, s.name()}
}

// fill evaluates the period.
func (r *Row) fill(ctx context.Context, s *Server, match string, interval time.Duration) error {
	if err := r.availability(ctx, s, match, interval); err != nil {
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
		p := part{ctx: ctx, server: s, match: match, to: to, length: to.Sub(from)}
		p.add(&r.Ways)
		for _, n := range byDirection(p.at("increase(oneway_round_trips_lost_total{%s}[%s])")) {
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
func (r *Row) availability(ctx context.Context, s *Server, match string, interval time.Duration) error {
	outage := time.Duration(0)
	for from := r.From; from.Before(r.To); {
		to := from.Add(min(longestPart, r.To.Sub(from)))
		// The value at the end of an interval is that of the interval. Prometheus 2 includes the begin of a range: a sample at the
		// border of two intervals would count in both.
		if from.Add(interval).After(to) {
			break // the rest is no interval
		}
		all, err := s.through(ctx, fmt.Sprintf("max(max_over_time(oneway_probe_up{%s}[%dms]))", match, interval.Milliseconds()-1), from.Add(interval), to, interval)
		if err != nil {
			return err
		}
		for _, one := range all {
			for _, v := range one.Values {
				if math.IsNaN(v.Value) {
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
	server *Server
	match  string
	to     time.Time
	length time.Duration
	err    error // the first
}

// at evaluates a query over the part, whose format has the matchers and the length.
func (p *part) at(query string) []series {
	if p.err != nil {
		return nil
	}
	all, err := p.server.at(p.ctx, fmt.Sprintf(query, p.match, seconds(p.length)), p.to)
	p.err = err
	return all
}

// add adds the counts of the part.
func (p *part) add(ways *[2]Way) {
	sent := byDirection(p.at("sum by (direction) (increase(oneway_packets_sent_total{%s}[%s]))"))
	lost := byDirection(p.at("sum by (direction) (increase(oneway_packets_lost_total{%s}[%s]))"))
	drop := byDirection(p.at("sum by (direction) (increase(oneway_packets_host_dropped_total{%s}[%s]))"))
	invalid := byDirection(p.at("sum by (direction) (increase(oneway_delay_invalid_total{%s}[%s]))"))
	low := byDirection(p.at("sum by (direction) (increase(oneway_delay_low_confidence_total{%s}[%s]))"))
	// Both begin with their first event; profile slim has neither, nor the interval.
	counting := len(p.at("count(count_over_time(oneway_probe_interval_seconds{%s}[%s]))")) > 0
	delays := p.delays()
	for d := range ways {
		name, w := sample.Direction(d).String(), &ways[d]
		w.counts.sent += sent[name]
		if n, known := lost[name]; known { // else the reflector does not number its replies
			w.counts.lost += n
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
	for name, v := range byDirection(p.at("max by (direction) (max_over_time(oneway_delay_max_seconds{%s}[%s]))")) {
		for d := range ways {
			if w := &ways[d]; sample.Direction(d).String() == name && (w.Max == nil || v > *w.Max) {
				w.Max = new(v)
			}
		}
	}
}

// delays are those of the part by direction: of native histograms, else of classic ones.
func (p *part) delays() map[string]histogram {
	all := map[string]histogram{}
	for _, one := range p.at("sum by (direction) (increase(oneway_delay_seconds{%s}[%s]))") {
		if len(one.Histogram.Buckets) == 0 {
			continue
		}
		h := histogram{}
		for _, b := range one.Histogram.Buckets {
			h.add(b)
		}
		all[one.Labels["direction"]] = h
	}
	classic := map[string]map[string]float64{}
	for _, one := range p.at("sum by (direction, le) (increase(oneway_delay_seconds_bucket{%s}[%s]))") {
		d := one.Labels["direction"]
		if classic[d] == nil {
			classic[d] = map[string]float64{}
		}
		classic[d][one.Labels["le"]] = one.Value.Value
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
	w.Withheld = share(w.counts.invalid, w.counts.invalid+w.counts.counting)
	w.LowConfidence = share(w.counts.low, w.counts.counting)
	w.P50, w.P95, w.P99 = w.histogram.quantile(0.5), w.histogram.quantile(0.95), w.histogram.quantile(0.99)
}
