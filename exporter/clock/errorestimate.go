package clock

import (
	"math"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/wire/timefmt"
)

// ErrorEstimate is what goes into a test packet (RFC 8762 section 4.2.1): the
// bound, rounded up, with S set. A clock that is not to be trusted says S=0 and
// the largest error that the field can hold, never a small one.
func (q Quality) ErrorEstimate(f timefmt.Format) timefmt.ErrorEstimate {
	if q.Bound.Reason != sample.OK {
		return timefmt.MakeErrorEstimate(math.MaxInt64, false, f)
	}
	return timefmt.MakeErrorEstimate(q.Bound.Error, true, f)
}
