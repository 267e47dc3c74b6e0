package bound

import (
	"time"

	"oneway.example/exporter/sample"
)

// Calibration is what was measured of one stamp of an interface (package calibration). The
// zero value corrects nothing.
type Calibration struct {
	// Origin of the stamps that these are the errors of; sample.Absent: of none.
	Origin sample.Origin
	// Systematic is removed from a delay for its near stamp. It may be negative.
	Systematic time.Duration
	// Random is how far the error of 95 % of the stamps is from Systematic at the
	// most. Not negative.
	Random time.Duration
	// Trusted: Largest, how far any was, stands in the bound in place of what is
	// assumed, also if it is smaller. Otherwise a bound is only widened.
	Trusted bool
	Largest time.Duration
}

// Correct removes the systematic error of the near stamp from d, the delay of either
// direction, and brings its bound up to date. The bound of d already has assumed for
// the error of that stamp. A stamp of another origin, a user-space fallback for
// instance, leaves d as it is. The value of a delay without a bound is corrected
// as well, so that variation is taken between like and like.
func (c Calibration) Correct(d sample.Delay, near sample.Stamp, assumed time.Duration) sample.Delay {
	if c.Origin == sample.Absent || near.Origin != c.Origin {
		return d
	}
	d.Value -= c.Systematic
	if !d.OK() {
		return d
	}
	others := d.Bound - assumed // of the clocks and of the far stamp
	if c.Trusted {
		d.Bound = Sum(others, max(c.Largest, near.Held))
	} else {
		d.Bound = Sum(others, max(c.Random, assumed), c.Systematic.Abs())
	}
	return d
}
