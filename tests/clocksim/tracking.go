package clocksim

import (
	"math"
	"time"
)

// Tracking is chronyd's reply to the command of that name. Offsets and delays are in seconds, frequencies are ratios;
// the signs are chronyd's.
type Tracking struct {
	Synchronized bool
	// ReferenceTime is the time of the last update by the clock, since the simulation's start; Updated is false if
	// there was none.
	ReferenceTime time.Duration
	Updated       bool
	// Correction is the value to add to the clock.
	Correction     float64
	LastOffset     float64
	Frequency      float64
	Residual       float64
	Skew           float64
	RootDelay      float64
	RootDispersion float64
	Interval       float64
	// Poll is the poll interval of the source as a power of two of seconds.
	Poll int
}

// Tracking is the daemon's reply at a time.
func (d *Chronyd) Tracking(at time.Duration) Tracking {
	t := Tracking{
		Correction: d.steering.correction(at), LastOffset: d.lastOffset,
		Frequency: -d.steering.base, Interval: d.interval, RootDelay: 1, RootDispersion: 1,
	}
	if d.config.Source != nil {
		t.Poll = d.config.Source.poll()
	}
	if !d.synchronized {
		return t
	}
	now := d.clock.seconds(at) + t.Correction
	t.Synchronized, t.Updated = true, true
	t.ReferenceTime = time.Duration(math.Round(d.referenceTime * 1e9))
	t.Residual, t.Skew, t.RootDelay = d.residual, d.skew, d.rootDelay
	t.RootDispersion = d.rootDispersion +
		math.Abs(now-d.referenceTime)*(d.skew+math.Abs(d.residual)+maxClockError)
	return t
}
