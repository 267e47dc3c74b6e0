package historyreport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/hourrow"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/estimate/history"
)

// longPolicy is the retention policy in which deploy/influxdb keeps rows of hours, and runs, for years.
const longPolicy = "long"

// rowsChunk is the time of one request for rows of hours, which have more columns than hourly values of points.
const rowsChunk = 7 * 24 * time.Hour

// rowColumn is a column of the rows of hours.
type rowColumn uint8

// The columns; the buckets follow.
const (
	rowValues rowColumn = iota // number of values
	rowSum
	rowMin
	rowMax
	rowBound
	rowSent
	rowLost
	rowUndecided
	rowReceived
	rowDropped
	rowBuckets
)

// rowFields are the fields of the columns of rows of packets and delays.
func rowFields() []string {
	fields := []string{
		rowValues: hourrow.Delays, rowSum: "delay_seconds_sum", rowMin: "delay_min_seconds", rowMax: "delay_max_seconds", rowBound: "delay_error_bound_seconds",
		rowSent: "packets_sent", rowLost: "packets_lost", rowUndecided: "packets_undecided", rowReceived: "packets_received", rowDropped: "packets_host_dropped",
	}
	for _, b := range metric.Delay.Buckets {
		fields = append(fields, hourrow.Bucket(hourrow.Delays, b))
	}
	return fields
}

// voiceFields are the fields of rows of calls.
func voiceFields() []string {
	return []string{rowValues: "voice_readings", rowSum: "voice_r_factor_sum"}
}

// sums are the rows of an hour, or of a month, as one. A column that no row has is NaN.
type sums struct {
	columns []float64
	forward bool
	partial bool // a row with delays has no extremes: the others' extremes are not of all delays
}

func newSums(columns int, labels map[string]string) *sums {
	s := &sums{columns: make([]float64, columns), forward: labels[metric.Direction] == forwardWay}
	for i := range s.columns {
		s.columns[i] = math.NaN()
	}
	return s
}

// add adds a row.
func (s *sums) add(row []*float64) {
	if len(row) > int(rowMax) {
		n := row[rowValues]
		s.partial = s.partial || n != nil && *n > 0 && (row[rowMin] == nil || row[rowMax] == nil)
	}
	for i := range s.columns {
		if i >= len(row) || row[i] == nil {
			continue
		}
		v, have := *row[i], s.columns[i]
		switch {
		case math.IsNaN(have):
			s.columns[i] = v
		case rowColumn(i) == rowMin:
			s.columns[i] = min(have, v)
		case rowColumn(i) == rowMax || rowColumn(i) == rowBound:
			s.columns[i] = max(have, v)
		default:
			s.columns[i] = have + v
		}
	}
}

// number is a column, 0 where no row has it.
func (s *sums) number(c rowColumn) float64 {
	if v := s.columns[c]; !math.IsNaN(v) {
		return v
	}
	return 0
}

// outcomes are the packets received, lost or undecided; profile slim counts no received ones, and has those sent.
func (s *sums) outcomes() float64 {
	if math.IsNaN(s.columns[rowReceived]) {
		return s.number(rowSent)
	}
	return s.number(rowReceived) + s.number(rowLost) + s.number(rowUndecided)
}

// unknown are the packets that arrived, or may have, without a known delay, as rules.Packets.MayHaveArrived has them.
func (s *sums) unknown() float64 {
	arrived := s.number(rowReceived)
	if s.forward {
		arrived = s.number(rowSent) - s.number(rowLost) - s.number(rowDropped)
	}
	return max(0, arrived-s.number(rowValues))
}

// quantile is the middle of the limits of a quantile, and half of their distance: of the known delays and others, whose delay is not known. It is
// not known if these can be any.
func (s *sums) quantile(rank, others float64) (value, half float64, known bool) {
	n := s.number(rowValues)
	nth := math.Ceil(rank * (n + others))
	if nth-others < 1 || nth > n {
		return 0, 0, false
	}
	low, _ := s.nth(max(1, nth-others))
	_, high := s.nth(nth)
	if math.IsInf(high, 1) {
		return 0, 0, false
	}
	return (low + high) / 2, max(0, high-low) / 2, true
}

// bucket has the values between two limits.
type bucket struct{ below, count, lower, upper float64 }

// buckets are the buckets within the extremes. Clocks that differ make delays negative, by at most the error bound.
func (s *sums) buckets() (all []bucket) {
	lower, below := -s.number(rowBound), 0.0
	for i, bound := range append(slices.Clone(metric.Delay.Buckets), math.Inf(1)) {
		upTo := s.number(rowValues)
		if c := int(rowBuckets) + i; c < len(s.columns) {
			upTo = s.number(rowColumn(c))
		}
		one := bucket{below, upTo - below, lower, bound}
		if v := s.columns[rowMin]; !s.partial && v > one.lower && v <= one.upper {
			one.lower = v
		}
		if v := s.columns[rowMax]; !s.partial && v < one.upper && v >= one.lower {
			one.upper = v
		}
		all, below, lower = append(all, one), upTo, bound
	}
	return all
}

// nth are limits of the nth smallest known delay: its bucket, the extremes, and what the sum of all delays leaves. i values of the bucket are at
// most it and the others at least it, so that the sum of the bucket limits it in both directions.
func (s *sums) nth(n float64) (lower, upper float64) {
	all := s.buckets()
	least, most := s.columns[rowSum], s.columns[rowSum] // of the sum of the bucket
	own := bucket{}
	for _, b := range all {
		switch {
		case b.count <= 0:
		case n > b.below && n <= b.below+b.count:
			own = b
		default:
			least, most = least-b.count*b.upper, most-b.count*b.lower
		}
	}
	i := n - own.below
	lower, upper = own.lower, own.upper
	if limit := (most - (i-1)*own.lower) / (own.count - i + 1); limit < upper {
		upper = max(limit, lower)
	}
	if limit := (least - (own.count-i)*own.upper) / i; limit > lower {
		lower = min(limit, upper)
	}
	return lower, upper
}

// influxHours are the hours, or the months, of the series of a reply.
type influxHours map[string]*influxHour

type influxHour struct {
	labels     map[string]string
	end        time.Time
	zone       *time.Location
	hour, kind string
	sums       *sums
}

// addRow adds the rows of a series to their local hours, and to their months. An hour in which the agent restarted has two rows. One that ends
// after the query, such as the present one, is no whole sample and is left out.
func (h influxHours) addRow(r *influxRow, q *Query, columns int, months influxHours) {
	labels := maps.Clone(r.Tags)
	zone := q.Zone
	if z, err := time.LoadLocation(labels[zoneLabel]); err == nil && labels[zoneLabel] != "" {
		zone = z
	}
	hour, kind := labels[runHour], labels[kindLabel]
	for _, own := range []string{runHour, kindLabel, zoneLabel} {
		delete(labels, own)
	}
	maps.DeleteFunc(labels, func(_, v string) bool { return v == "" }) // a shard without the tag has no such key
	name := fmt.Sprint(labels)
	for _, v := range r.Values {
		if len(v) == 0 || v[0] == nil {
			continue
		}
		at := time.Unix(int64(*v[0]), 0).In(zone)
		begin := at.Add(-time.Duration(at.Minute())*time.Minute - time.Duration(at.Second())*time.Second)
		end := begin.Add(time.Hour)
		if end.After(q.To) {
			continue
		}
		key := name + begin.UTC().String()
		if h[key] == nil {
			h[key] = &influxHour{labels, end, zone, hour, kind, newSums(columns, labels)}
		}
		h[key].sums.add(v[1:])
		if months == nil {
			continue
		}
		month := begin.Format("2006-01")
		if key = name + month; months[key] == nil {
			months[key] = &influxHour{labels, begin, zone, month, "", newSums(columns, labels)}
		}
		months[key].sums.add(v[1:])
	}
}

// ended removes the hours that are over at a time, and returns them in the order of time. The others may have another row.
func (h influxHours) ended(at time.Time) []*influxHour {
	over := influxHours{}
	maps.DeleteFunc(h, func(name string, one *influxHour) bool {
		if !one.end.After(at) {
			over[name] = one
		}
		return over[name] != nil
	})
	return over.sorted()
}

// sorted are the hours in the order of time.
func (h influxHours) sorted() []*influxHour {
	return slices.SortedFunc(maps.Values(h), func(a, b *influxHour) int { return a.end.Compare(b.end) })
}

// addTo adds the sample of the hour; an hour without a known value adds none.
func (h *influxHour) addTo(m *Measure, all collect) {
	s, sums := all.series(h.labels), h.sums
	one := sampleAt(h.end, h.zone, 0, h.hour, h.kind)
	switch {
	case m.Share():
		s.Counted = append(s.Counted, history.Counted{Sample: one, Events: sums.number(rowLost), Whole: sums.outcomes(), Undecided: sums.number(rowUndecided)})
	case m.points.rank > 0:
		value, half, known := sums.quantile(m.points.rank, sums.unknown())
		switch bound := sums.columns[rowBound]; {
		case math.IsNaN(bound) || !(sums.number(rowValues) > 0):
		case known:
			one.Value, one.Bound = value, bound+half
			s.Samples = append(s.Samples, one)
		default:
			s.Withheld = append(s.Withheld, one)
		}
	default:
		if n := sums.number(rowValues); n > 0 {
			one.Value = sums.number(rowSum) / n
			s.Samples = append(s.Samples, one)
		}
	}
}

// month is the month of the sums, whose key is its name.
func (h *influxHour) month() Month {
	m := Month{Month: h.hour, Delays: h.sums.number(rowValues)}
	if v, half, known := h.sums.quantile(0.5, 0); known {
		m.P50, m.P50Bound = &v, &half
	}
	if v, half, known := h.sums.quantile(0.95, 0); known {
		m.P95, m.P95Bound = &v, &half
	}
	return m
}

// hours reads the rows of hours from a retention policy, an empty one is the default.
func (d InfluxDB) hours(ctx context.Context, q Query, policy string) (collect, error) {
	f, fields, wanted := q.Measure.points, rowFields(), q.Labels
	q = q.bothWays()
	if f.rows == hourrow.OfVoice {
		fields = voiceFields()
	}
	var months influxHours
	if q.Measure.distribution != nil && q.Labels[metric.Path] != "" {
		months = influxHours{}
	}
	columns := make([]string, len(fields))
	for i, name := range fields {
		columns[i] = fmt.Sprintf("%q", name)
	}
	all, hours := collect{}, influxHours{}
	for from := q.From; from.Before(q.To); from = from.Add(rowsChunk) {
		to := from.Add(rowsChunk)
		if to.After(q.To) {
			to = q.To
		}
		rows, err := d.ask(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s GROUP BY *", strings.Join(columns, ", "), measurementIn(policy, f.rows), strings.Join(conditions(q, from, to), " AND ")))
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if fits(rows[i].Tags, q.Labels) {
				hours.addRow(&rows[i], &q, len(fields), months)
			}
		}
		for _, one := range hours.ended(to) {
			one.addTo(&q.Measure, all)
		}
		q.advance(to)
	}
	for _, one := range months.sorted() {
		s := all.series(one.labels)
		s.Months = append(s.Months, one.month())
	}
	return all.selected(wanted), nil
}

// measurementIn is a measurement of a retention policy.
func measurementIn(policy, measurement string) string {
	if policy == "" {
		return fmt.Sprintf("%q", measurement)
	}
	return fmt.Sprintf("%q.%q", policy, measurement)
}

// earlier reports whether there are points of the selection before a time.
func (d InfluxDB) earlier(ctx context.Context, q Query, before time.Time) (bool, error) {
	f := q.Measure.points
	rows, err := d.ask(ctx, fmt.Sprintf("SELECT first(%q) FROM %q WHERE %s GROUP BY *", f.value, f.measurement, strings.Join(conditions(q, q.From, before), " AND ")))
	return slices.ContainsFunc(rows, func(r influxRow) bool { return fits(r.Tags, q.Labels) }), err
}

// begin is the first sample of all histories.
func (c collect) begin() (first time.Time) {
	at := func(s history.Sample) {
		if first.IsZero() || s.Time.Before(first) {
			first = s.Time
		}
	}
	for _, s := range c {
		for _, one := range s.Samples {
			at(one)
		}
		for _, one := range s.Counted {
			at(one.Sample)
		}
	}
	return first
}

// long reads what is kept for years: the rows of hours, or the runs; without a sample there is at most what the rows withhold. The reason is why they are not used, or not from where they are sought first.
func (d InfluxDB) long(ctx context.Context, q Query) (all collect, from, reason string, err error) {
	f := q.Measure.points
	read, what, policies := d.hours, "the rows of hours ("+f.rows+")", []string{longPolicy, ""}
	if f.rows == "" {
		read, what, policies = d.points, "runs ("+f.measurement+")", []string{longPolicy}
	}
	var left collect
	for _, policy := range policies {
		in := fmt.Sprintf("in the retention policy %q", policy)
		if policy == "" {
			in = "in the default retention policy"
		}
		all, err = read(ctx, q, policy)
		if refused, ok := errors.AsType[*refusedError](err); ok {
			reason += fmt.Sprintf("; %s %s: %s", what, in, refused.message)
			continue
		}
		if err != nil {
			return nil, "", "", err
		}
		if len(all.sorted()) == 0 && all.withheld() {
			left = all
			reason += fmt.Sprintf("; %s %s have no %s: %s", what, in, q.Measure.Words, q.Measure.fewKnown())
			continue
		}
		if len(all.sorted()) == 0 {
			reason += fmt.Sprintf("; there are no %s %s", strings.TrimPrefix(what, "the "), in)
			continue
		}
		if begin := all.begin(); begin.Sub(q.From) > 24*time.Hour {
			older, err := d.earlier(ctx, q, begin.Add(-24*time.Hour))
			if err != nil {
				return nil, "", "", err
			}
			if older {
				reason += fmt.Sprintf("; %s %s begin at %s, after the points", what, in, begin.In(q.Zone).Format(clockTime))
				continue
			}
		}
		return all, what + " " + in, strings.TrimPrefix(reason, "; "), nil
	}
	return left, "", strings.TrimPrefix(reason, "; "), nil
}
