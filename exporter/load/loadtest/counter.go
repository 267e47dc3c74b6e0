package loadtest

import (
	"net/netip"
	"slices"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
)

// Counter is a counter or a histogram to which the runs of a test add. Its series exist with 0 before the first run, so that
// rates and increases include that run: one for each combination of its label values.
type Counter struct {
	Desc *metric.Desc
	// Values are the values of each label that is neither path, probe or direction nor has a list in Desc.Values; a label
	// without values: they are not known yet.
	Values metric.Values
}

// Counting is implemented by a Test with counters of its own.
type Counting interface {
	// Counters returns the counters to which Session.Account and Publish add. remote is the address of the remote end, not
	// valid before the first session of a remote end with a name.
	//
	// A counter is left out if only a run can tell whether it is known: metric.TCPTimeouts depends on the kernel of the sender.
	Counters(remote netip.Addr) []Counter
}

// openCounters opens the counters of the test, as far as their labels are known. Of metric.Runs this is one series: a probe meets
// few of the combinations of result and reason; metric.RunResults begins with 0 for each result.
func (r *runner) openCounters(remote netip.Addr) {
	all := []Counter{
		{Desc: metric.RunBytes},
		{Desc: metric.RunResults},
		{Desc: metric.Runs, Values: metric.Values{metric.ResultL: {string(Completed)}, metric.ReasonL: {runreason.OK}}},
	}
	if c, ok := r.test.(Counting); ok {
		all = append(all, c.Counters(remote)...)
	}
	r.scope.Update(func() {
		for _, c := range all {
			for _, labels := range c.series(r.test) {
				r.scope.Series(c.Desc, labels...)
			}
		}
	})
}

// series returns the label values of each series, after path and probe.
func (c Counter) series(t Test) [][]string {
	series := [][]string{nil}
	for _, label := range c.Desc.Labels[2:] {
		var longer [][]string
		for _, value := range c.values(t, label) {
			for _, labels := range series {
				longer = append(longer, append(slices.Clip(labels), value))
			}
		}
		series = longer
	}
	return series
}

// values returns the values of a label.
func (c Counter) values(t Test, label string) (all []string) {
	if own := c.Values.Names(label); own != nil {
		return own
	}
	if label != metric.Direction {
		return c.Desc.Values.Names(label)
	}
	for _, d := range t.Directions() {
		all = append(all, d.String())
	}
	return all
}
