package clock

import (
	"math"
	"time"

	"oneway.example/exporter/wire/timefmt"
)

// ErrorEstimate is the quality as a STAMP packet carries it (RFC 8762 section
// 4.2.1, RFC 4656 section 4.1.2). A clock that is not to be trusted has S=0 and the
// largest error that the field holds, so that a receiver that looks at either is not
// misled. A bound below the resolution of our stamps is given as that, 1 ns: what an
// idle field would say (0x8001, 0.23 ns) is never sent.
func (q Quality) ErrorEstimate(f timefmt.Format) timefmt.ErrorEstimate {
	if !q.Synchronised() {
		return timefmt.MakeErrorEstimate(math.MaxInt64, false, f)
	}
	return timefmt.MakeErrorEstimate(max(q.Bound.Error, time.Nanosecond), true, f)
}
