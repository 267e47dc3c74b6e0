package heavy

import (
	"sort"
	"strings"

	"oneway.example/exporter/metric"
)

// Values publishes runs of one path and probe. Gauges that one run sets and the next does
// not are closed then: what is no longer known has no value. Counters and histograms stay.
type Values struct {
	sink        metric.Sink
	path, probe string
	open        map[string]*value
	generation  uint64
	// run is the exemplars' of what is observed; empty: they are none.
	run string
	// observed waits until the sink is free again: a run has many observations.
	observed []observation
}

type observation struct {
	to     *value
	values []float64
}

type value struct {
	metric.Series
	gauge bool
	seen  uint64
	// marked has, for each bucket of a histogram, the generation of its last exemplar.
	buckets []float64
	marked  []uint64
}

// observe gives the first value of a run in each bucket the run's exemplar: the others
// would only replace it by the same.
func (v *value) observe(x float64, run string, generation uint64) {
	if run == "" {
		v.Observe(x)
		return
	}
	if v.marked == nil {
		v.marked = make([]uint64, len(v.buckets)+1)
	}
	bucket := &v.marked[sort.SearchFloat64s(v.buckets, x)]
	if *bucket == generation {
		v.Observe(x)
		return
	}
	*bucket = generation
	v.ObserveWithExemplar(x, metric.RunIDL, run)
}

// NewValues publishes to sink what has these two labels first.
func NewValues(sink metric.Sink, path, probe string) *Values {
	return &Values{sink: sink, path: path, probe: probe, open: map[string]*value{}}
}

// Name has what is observed from now on carry exemplars that name the run: one a run and
// bucket at most.
func (v *Values) Name(run string) { v.run = run }

// Set sets a gauge; labels are those after path and probe.
func (v *Values) Set(d *metric.Desc, x float64, labels ...string) { v.series(d, labels).Set(x) }

// Add adds to a counter.
func (v *Values) Add(d *metric.Desc, delta float64, labels ...string) { v.series(d, labels).Add(delta) }

// Observe observes one value into a histogram.
func (v *Values) Observe(d *metric.Desc, x float64, labels ...string) {
	v.ObserveAll(d, []float64{x}, labels...)
}

// ObserveAll observes many. They are seen a moment after the gauges are: so many would hold
// a scrape up.
func (v *Values) ObserveAll(d *metric.Desc, values []float64, labels ...string) {
	v.observed = append(v.observed, observation{v.series(d, labels), values})
}

func (v *Values) series(d *metric.Desc, labels []string) *value {
	key := d.Name + "\x00" + strings.Join(labels, "\x00")
	one := v.open[key]
	if one == nil {
		one = &value{
			Series: v.sink.Series(d, append([]string{v.path, v.probe}, labels...)...),
			gauge:  d.Kind == metric.Gauge, buckets: d.Buckets,
		}
		v.open[key] = one
	}
	one.seen = v.generation
	return one
}

// Replace runs publish; a reader of the sink sees all of it or nothing, and no gauge of
// the run before that publish has not set.
func (v *Values) Replace(publish func(*Values)) {
	v.sink.Update(func() {
		v.generation++
		publish(v)
		for key, one := range v.open {
			if one.gauge && one.seen != v.generation {
				one.Close()
				delete(v.open, key)
			}
		}
	})
	for _, o := range v.observed {
		for _, x := range o.values {
			o.to.observe(x, v.run, v.generation)
		}
	}
	v.observed = nil
}

// Close ends all series.
func (v *Values) Close() {
	for key, one := range v.open {
		one.Close()
		delete(v.open, key)
	}
}
