package stamp

import (
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/wire/timefmt"
)

// farClock is what the far end last said of its clock, in its Error Estimate (RFC 8762
// section 4.2.1). The zero value: nothing.
type farClock struct {
	known, synchronised bool
	bound               time.Duration
}

// heard takes the Error Estimate of an answer. A multiplier of zero means that the
// field is not to be used (RFC 4656 section 4.1.2); one of more than bound.Limit,
// up to 17,000 years, that the writer does not know.
func (c *farClock) heard(e timefmt.ErrorEstimate) {
	usable := e.Valid() && e.Bound() <= bound.Limit
	*c = farClock{known: true, synchronised: e.Synchronised() && usable, bound: e.Bound()}
}

// farSeries show it.
type farSeries struct{ synchronised, bound metric.Series }

func newFarSeries(c *scope) farSeries {
	return farSeries{c.open(metric.FarClockSynchronized), c.open(metric.FarClockErrorBound)}
}

// publish shows what was said, while the far end is there to say it.
func (s *farSeries) publish(c farClock, up bool) {
	known := c.known && up
	setFloat(s.synchronised, boolFloat(c.synchronised), known)
	set(s.bound, c.bound, known && c.synchronised)
}
