package loadtest

import (
	"net/netip"
	"sort"
	"strings"
	"time"

	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/probe/link"
)

// open creates the series that exist before the first run.
func (r *runner) open() {
	r.scope, r.values = r.env.Scope(r.target), NewValues(r.env.Scope(r.target))
	r.scope.Update(func() {
		r.fill = link.NewFill(r.links, link.Use{Link: r.link, Path: r.target.Path}, r.scope)
		r.scope.Set(metric.RunInterval, r.opts.Every.Seconds())
		r.scope.Set(metric.RunRequired, float64(r.required), r.link)
	})
	host, _ := r.test.Remote()
	addr, _ := netip.ParseAddr(host) // not valid: a name
	r.openCounters(addr)
}

func (r *runner) close() {
	r.values.Close()
	r.scope.Close()
}

// due sets the time of the next run; zero: none is planned.
func (r *runner) due(at time.Time) {
	r.scope.SetIf(metric.RunNext, float64(at.UnixNano())/1e9, !at.IsZero())
}

// count counts and logs a run that was due.
func (r *runner) count(o *Outcome) {
	r.tally(o.Result, o.Reason)
	if o.Result == Completed {
		r.log.Info("Run completed", "run", o.ID, "seconds", o.End.Sub(o.Begin).Seconds(), "forward_bytes", o.ForwardBytes, "reverse_bytes", o.ReverseBytes)
		return
	}
	r.log.Warn("Run not completed", "run", o.ID, "result", string(o.Result), "reason", o.Reason, "err", o.Error)
}

func (r *runner) tally(result Result, reason string) {
	r.scope.Series(metric.Runs, string(result), reason).Add(1)
	r.scope.Series(metric.RunResults, string(result)).Add(1)
}

// account counts what a run sent and received damaged, also of a run that failed.
func (r *runner) account(s Session, light *lightPackets, o *Outcome) {
	r.scope.Update(func() {
		s.Account(o, r.scope)
		light.account(o)
		r.fill.Sent(o.ForwardBytes, o.ReverseBytes) // light packets and their replies go in both directions
	})
}

// publish sets the metrics of a completed run in one update, and records their values.
func (r *runner) publish(o *Outcome) {
	results := r.env.Recorder.Results()
	r.values.recorded, r.values.listened = recorded{}, results.HasListeners()
	r.values.Replace(o.ID, func(v *Values) {
		r.test.Publish(v, o.Run)
		o.Working.publish(v)
		r.scope.Set(metric.RunLast, float64(o.End)/float64(time.Second))
		r.publishDay(o.End.Time())
		v.Set(metric.RunDuration, o.End.Sub(o.Begin).Seconds())
	})
	o.Values = r.values.recorded.values()
	if r.values.listened {
		r.values.recorded.record(results, o.Run, r.env.Local.Calendar(), o.End.Time())
	}
}

// publishDay sets the local time of a run.
func (r *runner) publishDay(end time.Time) {
	local := r.env.Local.Calendar()
	_, offset := local.Local(end).Zone()
	r.scope.Set(metric.RunUTCOffset, float64(offset))
	holiday := 0.0
	if local.DayType(end) == localday.Holiday {
		holiday = 1
	}
	r.scope.SetIf(metric.RunHoliday, holiday, local.Holidays() != nil)
}

// Values publishes runs of one path and probe. A gauge that a run does not set is removed, so that
// no old value stays. Histograms and counters stay.
type Values struct {
	scope *metric.Scope
	// gauges are those set by the present run, by family and labels.
	gauges map[string]gauge
	// observed is applied after the update of the sink: a run has many observations.
	observed []observation
	recorded recorded
	listened bool // recorded needs the observations
}

type gauge struct {
	desc   *metric.Desc
	labels []string
}

type observation struct {
	to      metric.Series
	buckets []float64
	values  []float64
}

// NewValues returns Values in a scope with the labels path and probe.
func NewValues(scope *metric.Scope) *Values { return &Values{scope: scope} }

// Set sets a gauge; labels follow path and probe.
func (v *Values) Set(d *metric.Desc, x float64, labels ...string) {
	v.gauges[d.Name+"\x00"+strings.Join(labels, "\x00")] = gauge{d, labels}
	v.scope.Set(d, x, labels...)
	v.recorded.set(d, x, labels)
}

// SetKnown sets a gauge, unless its value is unknown: nil.
func (v *Values) SetKnown(d *metric.Desc, x *float64, labels ...string) {
	if x != nil {
		v.Set(d, *x, labels...)
	}
}

// Add adds to a counter.
func (v *Values) Add(d *metric.Desc, delta float64, labels ...string) {
	v.scope.Series(d, labels...).Add(delta)
	v.recorded.add(d, delta, labels)
}

// Observe observes one value in a histogram.
func (v *Values) Observe(d *metric.Desc, x float64, labels ...string) {
	v.ObserveAll(d, []float64{x}, labels...)
}

// ObserveAll observes many values. They appear in the sink shortly after the gauges, as so many
// would delay a scrape.
func (v *Values) ObserveAll(d *metric.Desc, values []float64, labels ...string) {
	v.observed = append(v.observed, observation{v.scope.Series(d, labels...), d.Buckets, values})
	if v.listened {
		v.recorded.observe(d, values, labels)
	}
}

// Replace calls publish in one update of the sink and removes the gauges of the previous run that it
// does not set. The first observation in each bucket has an exemplar with the run's ID; more would
// replace it by the same.
func (v *Values) Replace(run string, publish func(*Values)) {
	before := v.gauges
	v.gauges = map[string]gauge{}
	v.scope.Update(func() {
		publish(v)
		for key, one := range before {
			if _, set := v.gauges[key]; !set {
				v.scope.Drop(one.desc, one.labels...)
			}
		}
	})
	marked := map[metric.Series]map[int]bool{}
	for _, o := range v.observed {
		if marked[o.to] == nil {
			marked[o.to] = map[int]bool{}
		}
		for _, x := range o.values {
			if bucket := sort.SearchFloat64s(o.buckets, x); marked[o.to][bucket] {
				o.to.Observe(x)
			} else {
				marked[o.to][bucket] = true
				o.to.ObserveWithExemplar(x, metric.RunIDL, run)
			}
		}
	}
	v.observed = nil
}

// ReplaceRecorded is Replace, and returns what publish sets, adds and observes, as the recorder has it.
func (v *Values) ReplaceRecorded(run string, publish func(*Values)) []record.Value {
	v.recorded, v.listened = recorded{}, true
	v.Replace(run, publish)
	return v.recorded.sorted()
}

// Close removes all series.
func (v *Values) Close() { v.scope.Close() }
