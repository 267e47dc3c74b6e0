package tcp

import (
	"math"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/fairness"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// TwoWay compares two directions, of which the second sent in the middle of the first (Halepovic 2008 figure 17 and
// table 3). All its times are those of arrival, since the first arrival of the first direction.
type TwoWay struct {
	// Directions are the long one and the other.
	Directions [2]Part `json:"directions"`
	// Begin and End are the first and the last arrival of the other direction.
	Begin float64 `json:"overlap_begin_seconds"`
	End   float64 `json:"overlap_end_seconds"`
	// Bound is the largest error of the time between both directions: half of the time until the first payload to the load
	// server was acknowledged, at least half of the least round-trip time. It arrived in that time.
	Bound float64 `json:"time_error_bound_seconds"`
	// Correlation is that of the throughput in each second in which both sent; nil: a direction did not vary, or there are
	// too few seconds.
	Correlation *Correlation `json:"correlation,omitempty"`
}

// Part is the throughput of a direction before, while and after the other sent, without the omitted time. It is nil
// where a part has no whole second; the other direction has During only.
type Part struct {
	Direction string   `json:"direction"`
	Before    *float64 `json:"before_bytes_per_second,omitempty"`
	During    *float64 `json:"during_bytes_per_second,omitempty"`
	After     *float64 `json:"after_bytes_per_second,omitempty"`
	// PerSecond is the throughput of each second in which the long direction sent.
	PerSecond []float64 `json:"throughput_by_second_bytes_per_second"`
}

// Correlation is Pearson's coefficient with its confidence interval of 95 %.
type Correlation struct {
	Value float64 `json:"value_ratio"`
	Lower float64 `json:"lower_ratio"`
	Upper float64 `json:"upper_ratio"`
}

// overlap adds the comparison of the directions, the first of them the long one, if both received anything.
func (res *Result) overlap(r *loadtest.Run, results []*tcptraffic.Result, omit time.Duration) {
	if len(res.Directions) < 2 { // one has no result
		return
	}
	long, other := res.Directions[0], res.Directions[1]
	if long.Throughput == nil || other.Throughput == nil || long.RTTMin == nil || other.RTTMin == nil {
		return
	}
	half := time.Duration(min(*long.RTTMin, *other.RTTMin) / 2 * float64(time.Second))
	res.TwoWay = compareDirections(results[0], results[1], long.PerSecond, half, omit)
	r.Summary = append(r.Summary, res.TwoWay.summary(long.RFC6349.Ideal, other.RFC6349.Ideal)...)
}

// compareDirections compares the transfers of two directions; long has the rates of each second of the first, and half is
// half of the least round-trip time.
func compareDirections(first, second *tcptraffic.Result, long []float64, half, omit time.Duration) *TwoWay {
	bound := max(half, firstAcked(first)/2, firstAcked(second)/2)
	flows, zero := arrivals(first), clockZero(first, bound)
	zero = zero.Add(firstOf(flows))
	flows = arrivals(second)
	shift, end, other := clockZero(second, bound).Sub(zero), time.Duration(0), make([]float64, len(long))
	for _, f := range flows {
		for i := range f {
			f[i].At += shift
			end = max(end, f[i].At)
		}
		for i, rate := range tcpstate.Seconds(f, 0, time.Duration(len(long))*time.Second) {
			other[i] += rate
		}
	}
	begin := firstOf(flows)
	x := &TwoWay{Begin: begin.Seconds(), End: end.Seconds(), Bound: bound.Seconds()}
	p := fairness.Around(long, begin, end, omit)
	x.Directions = [2]Part{
		{Direction: first.Plan.Direction.String(), Before: p.Before, During: p.During, After: p.After, PerSecond: long},
		{Direction: second.Plan.Direction.String(), During: fairness.Around(other, begin, end, omit).During, PerSecond: other},
	}
	if c, ok := fairness.Correlate(fairness.Within(long, begin+omit, end), fairness.Within(other, begin+omit, end)); ok {
		x.Correlation = &Correlation{c.Value, c.Lower, c.Upper}
	}
	return x
}

// clockZero returns when the times of the receiver began, by the clock of this end. For those of the load server it is known
// from its first payload, which left here when this end began, and arrived at most twice the bound later.
func clockZero(t *tcptraffic.Result, bound time.Duration) time.Time {
	if t.Plan.Direction == sample.Reverse {
		return t.Begin
	}
	return t.Begin.Add(bound - firstOf(arrivals(t)))
}

// firstAcked returns when this end knew that the first payload had arrived at the load server; 0: it received it, or no sample
// has it.
func firstAcked(t *tcptraffic.Result) (first time.Duration) {
	if t.Plan.Direction == sample.Reverse {
		return 0
	}
	for i := range t.Sender {
		if at, ok := t.Sender[i].FirstAcked(); ok && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// firstOf returns the first arrival of flows of which one has arrivals.
func firstOf(flows [][]tcpstate.Arrival) time.Duration {
	first := time.Duration(math.MaxInt64)
	for _, f := range flows {
		if len(f) > 0 {
			first = min(first, f[0].At)
		}
	}
	return first
}

// summary has the parts of both directions, beside the most that the link of each allows, if that is known, and the
// correlation.
func (x *TwoWay) summary(ideal ...*float64) (lines []probe.Result) {
	for i, p := range x.Directions {
		for _, part := range p.parts() {
			if part.rate == nil {
				continue
			}
			line := probe.Result{Quantity: part.name + " the overlap", Direction: p.Direction, Numbers: []report.Number{{Value: part.rate, Unit: unit.BytesPerSecond}}}
			if ideal[i] != nil {
				line.Numbers = append(line.Numbers, report.Number{Value: new(*part.rate / *ideal[i]), Unit: unit.Ratio, Text: "of the link"})
			}
			lines = append(lines, line)
		}
	}
	if c := x.Correlation; c != nil {
		lines = append(lines, probe.Result{Quantity: "correlation of both", Numbers: []report.Number{{Value: &c.Value, Range: &[2]float64{c.Lower, c.Upper}, Unit: unit.Index}}})
	}
	return lines
}

// part is a part of a run, with its name in the label part.
type part struct {
	name string
	rate *float64
}

func (p *Part) parts() [3]part {
	return [3]part{{"before", p.Before}, {"during", p.During}, {"after", p.After}}
}

func (x *TwoWay) publish(v *loadtest.Values) {
	for _, p := range x.Directions {
		for _, part := range p.parts() {
			v.SetKnown(metric.TCPTwoWayThroughput, part.rate, p.Direction, part.name)
		}
	}
	if x.Correlation != nil {
		v.Set(metric.TCPTwoWayCorrelation, x.Correlation.Value)
	}
}
