package slareport

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/serve/promapi"
)

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) + "s" }

// part is a time of at most a day.
type part struct {
	client *promapi.Client
	match  string
	to     time.Time
	length time.Duration
	// recorded: counts and delays are the sums of the hours that the rules have recorded.
	recorded bool
}

// series selects a series of the path over the part.
func (p *part) series(name string, matchers ...string) string {
	return name + "{" + strings.Join(append([]string{p.match}, matchers...), ",") + "}[" + seconds(p.length) + "]"
}

// family is the label of the values of a query for several families. outcomes, arrived and roundTrips are its values for what
// rules.Packets knows.
const (
	family     = "family"
	outcomes   = "outcomes"
	arrived    = "arrived"
	roundTrips = "round_trips"
	// outstanding are the packets without an outcome; unreachable is the same number in an outage, else 0.
	outstanding, unreachable = "outstanding", "unreachable"
)

// counts are the increases of the counters in the part, and the largest delay, by name of the family and direction.
func (p *part) counts(ctx context.Context) (map[string]map[string]float64, error) {
	packets := rules.Packets{Sum: true, Series: func(d *metric.Desc, matchers ...string) string { return p.series(d.Name, matchers...) }}
	queries := []string{named("count(count_over_time("+p.series(rules.DelaysCounted().Name)+"))", rules.DelaysCounted().Name)}
	if p.recorded {
		queries = append(queries,
			named("max by (direction) (max_over_time("+p.hours(rules.LongDelayMax.Name)+"))", metric.DelayMax.Name),
			named(p.sum(rules.LongOutcomes.Name), outcomes), named(p.sum(rules.LongArrived.Name), arrived), named(p.sum(rules.LongRoundTrips.Name), roundTrips))
	} else {
		queries = append(queries,
			named("max by (direction) (max_over_time("+p.series(metric.DelayMax.Name)+"))", metric.DelayMax.Name),
			named(packets.Outcomes(), outcomes), named(packets.MayHaveArrived(), arrived), named(packets.RoundTrips(), roundTrips))
	}
	for _, d := range []*metric.Desc{metric.PacketsSent, metric.PacketsLost, metric.PacketsUndecided, metric.PacketsHostDropped, metric.RoundTripLost} {
		if p.recorded {
			queries = append(queries, named(p.sum(rules.LongIncrease(d)), d.Name))
		} else {
			queries = append(queries, named("sum by (direction) (increase("+p.series(d.Name)+"))", d.Name))
		}
	}
	for _, d := range []*metric.Desc{metric.DelayInvalid, metric.DelayLowConfidence, metric.DelayNegative} {
		queries = append(queries, named("sum by (direction) (increase("+p.series(d.Name)+"))", d.Name))
	}
	values, err := p.client.At(ctx, strings.Join(queries, " or "), p.to)
	return byFamily(values), err
}

// byFamily has the values of each family by direction.
func byFamily(values model.Vector) map[string]map[string]float64 {
	all := map[string]model.Vector{}
	for _, v := range values {
		name := string(v.Metric[family])
		all[name] = append(all[name], v)
	}
	sums := map[string]map[string]float64{}
	for name, some := range all {
		sums[name] = byDirection(some)
	}
	return sums
}

// named is a query whose values have a name in the label family.
func named(query, name string) string {
	return "label_replace(" + query + ", " + strconv.Quote(family) + ", " + strconv.Quote(name) + `, "", "")`
}

// add adds the counts of the part.
func (p *part) add(ctx context.Context, r *Row) error {
	if err := p.find(ctx); err != nil {
		return err
	}
	all, err := p.counts(ctx)
	if err != nil {
		return err
	}
	delays, err := p.delays(ctx)
	if err != nil {
		return err
	}
	_, counting := all[rules.DelaysCounted().Name]
	for d := range r.Ways {
		name, w := sample.Direction(d).String(), &r.Ways[d]
		if n, known := all[metric.PacketsLost.Name][name]; known { // else the reflector does not number its replies
			sent, of := all[metric.PacketsSent.Name][name]-all[metric.PacketsHostDropped.Name][name], all[outcomes][name]
			w.counts.lost += n
			w.counts.undecided += all[metric.PacketsUndecided.Name][name]
			w.counts.of += of
			w.counts.outstanding += sent - of
			w.counts.directed = true
		}
		if n, known := all[arrived][name]; known {
			w.counts.unmeasured += n - delays[name].count()
		}
		if n, known := all[metric.DelayNegative.Name][name]; known {
			w.counts.negative += n
			w.counts.signed += delays[name].count()
		}
		for limits, n := range delays[name] {
			w.histogram.add(bucket{limits[0], limits[1], n})
		}
		if counting {
			w.counts.invalid += all[metric.DelayInvalid.Name][name]
			w.counts.low += all[metric.DelayLowConfidence.Name][name]
			w.counts.counting += delays[name].count()
		}
		if v, known := all[metric.DelayMax.Name][name]; known && (w.Max == nil || v > *w.Max) {
			w.Max = new(v)
		}
	}
	r.trips.lost += all[metric.RoundTripLost.Name][""]
	r.trips.of += all[roundTrips][""]
	return nil
}

// waiting are the packets without an outcome at a time: outstanding and unreachable, by direction.
func (r *Row) waiting(ctx context.Context, c *promapi.Client, at time.Time) (map[string]map[string]float64, error) {
	down := "(max(" + metric.ProbeUp.Name + "{" + r.match() + "}) == bool 0)"
	packets := "sum by (direction) (" + metric.PacketsOutstanding.Name + "{" + r.match() + "})"
	values, err := c.At(ctx, named(packets, outstanding)+" or "+named(packets+" * on () group_left () "+down, unreachable), at)
	return byFamily(values), err
}

// begun adds the packets that had no outcome at the begin of the period, or after a load test: it has the outcomes of these too. In an
// outage all that are not of the period so far are counted in before.
func (r *Row) begun(ctx context.Context, c *promapi.Client, at time.Time, interval time.Duration) error {
	all, err := r.waiting(ctx, c, at)
	if err != nil {
		return err
	}
	if n := all[unreachable][sample.Forward.String()] - r.Ways[sample.Forward].counts.outstanding; n > 0 {
		r.before += n
		if err := r.tell(ctx, c, at, interval); err != nil {
			return err
		}
	} else if at.After(r.From) {
		return nil
	}
	for d := range r.Ways {
		w := &r.Ways[d].counts
		n := all[outstanding][sample.Direction(d).String()] - w.outstanding
		w.outstanding += n
		if sample.Direction(d) == sample.Forward {
			w.unmeasured += n
		}
	}
	return nil
}

// tell adds the losses that are told when an outage ends: at the end of the next interval, after the waiting time.
func (r *Row) tell(ctx context.Context, c *promapi.Client, from time.Time, interval time.Duration) error {
	i := slices.IndexFunc(r.ends, from.Before)
	if i < 0 || r.ends[i].Equal(r.told) {
		return nil
	}
	r.told = r.ends[i]
	p := part{match: r.match(), length: r.told.Add(interval + time.Minute).Sub(from)}
	values, err := c.At(ctx, "sum by (direction) (increase("+p.series(metric.PacketsLost.Name)+"))", from.Add(p.length))
	lost := byDirection(values)
	for d := range r.Ways {
		r.Ways[d].counts.told += lost[sample.Direction(d).String()]
	}
	return err
}

// delays are the delays of the part by direction, from native histograms, else from classic ones.
func (p *part) delays(ctx context.Context) (map[string]histogram, error) {
	query := "sum by (direction) (increase(" + p.series(metric.Delay.Name) + ")) or sum by (direction, le) (increase(" + p.series(metric.Delay.Name+"_bucket") + "))"
	if p.recorded {
		query = p.sum(rules.LongIncrease(metric.Delay)) + " or sum by (direction, le) (sum_over_time(" + p.hours(rules.LongBuckets(metric.Delay)) + "))"
	}
	values, err := p.client.At(ctx, query, p.to)
	if err != nil {
		return nil, err
	}
	all, classic := map[string]histogram{}, map[string]map[string]float64{}
	for _, one := range values {
		d := string(one.Metric[metric.Direction])
		switch {
		case one.Histogram != nil && len(one.Histogram.Buckets) > 0:
			all[d] = histogram{}
			all[d].addNative(one.Histogram)
		case one.Histogram == nil:
			if classic[d] == nil {
				classic[d] = map[string]float64{}
			}
			classic[d][string(one.Metric[model.BucketLabel])] = float64(one.Value)
		}
	}
	for d, counts := range classic {
		if all[d] == nil {
			all[d] = histogram{}
			all[d].addClassic(counts)
		}
	}
	return all, nil
}

// byDirection has the value of each direction; a sum over the other labels.
func byDirection(all model.Vector) map[string]float64 {
	sums := map[string]float64{}
	for _, s := range all {
		if v := float64(s.Value); !math.IsNaN(v) {
			sums[string(s.Metric[metric.Direction])] += v
		}
	}
	return sums
}
