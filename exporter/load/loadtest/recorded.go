package loadtest

import (
	"maps"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/probe/report"
)

// recorded are the values of a run for the recorder, by family and labels; nil: nobody listens.
type recorded map[string]*record.Value

// of is the value of a series; nil if nobody listens.
func (r recorded) of(d *metric.Desc, labels []string) *record.Value {
	if r == nil {
		return nil
	}
	key := d.Name + "\x00" + strings.Join(labels, "\x00")
	if r[key] == nil {
		r[key] = &record.Value{Desc: d, Labels: labels}
	}
	return r[key]
}

// set keeps the value of a gauge.
func (r recorded) set(d *metric.Desc, x float64, labels []string) {
	if v := r.of(d, labels); v != nil {
		v.Values = append(v.Values[:0], x)
	}
}

// add adds to a counter.
func (r recorded) add(d *metric.Desc, delta float64, labels []string) {
	if v := r.of(d, labels); v != nil {
		if len(v.Values) == 0 {
			v.Values = []float64{0}
		}
		v.Values[0] += delta
	}
}

// observe keeps observations.
func (r recorded) observe(d *metric.Desc, all []float64, labels []string) {
	if v := r.of(d, labels); v != nil {
		v.Values = append(v.Values, all...)
	}
}

// values are the gauges by family, then by the values of their labels, as a report has them. Families with a value for each bin,
// step or cell of a run are left out: its results have them.
func (r recorded) values() report.Values {
	all := report.Values{}
	for _, key := range slices.Sorted(maps.Keys(r)) {
		v := r[key]
		if Summarizes(v.Desc) {
			all.Set(v.Values[0], append([]string{strings.TrimPrefix(v.Desc.Name, "oneway_")}, v.Labels...)...)
		}
	}
	return all
}

// Summarizes reports whether Outcome.Values has a family.
func Summarizes(d *metric.Desc) bool {
	return d.Kind == metric.Gauge && !slices.ContainsFunc(d.Labels, func(label string) bool {
		return slices.Contains([]string{metric.ElapsedL, metric.StateL, metric.OfferedL, metric.SendBufferL, metric.PacketRateL}, label)
	})
}

// record passes the values of a run to the recorder, in the order of families and labels.
func (r recorded) record(to *record.Stream[record.Result], run *Run, local localday.Calendar, end time.Time) {
	if len(r) == 0 {
		return
	}
	result := &record.Result{Path: run.Path, Probe: run.Probe, Run: run.ID, Begin: run.Begin, LocalHour: local.Local(end).Hour(), DayType: local.DayType(end)}
	result.Values = r.sorted()
	to.Record(result)
}

// sorted are the values in the order of families and labels.
func (r recorded) sorted() (all []record.Value) {
	for _, key := range slices.Sorted(maps.Keys(r)) {
		all = append(all, *r[key])
	}
	return all
}
