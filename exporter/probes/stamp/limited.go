package stamp

import (
	"math"
	"time"

	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/sample"
)

// The smallest delay of the last hour is kept in parts of 10 minutes, the present one included.
const (
	floorParts = 7
	floorPart  = 10 * time.Minute
)

// floorWindows is the number of windows of a part.
func (o *Options) floorWindows() uint16 {
	return uint16(min(max(1, floorPart/max(o.Window, 1)), math.MaxUint16))
}

// limited counts the delays of one direction that are above the limits of the options, of packets that arrived in time.
type limited struct {
	// The counts wrap around.
	delays, slow, maybeSlow, unbounded uint32
	// windows is the number of windows of a part; ended is how many of the present one are over.
	windows, ended uint16
	// why is the reason of the last delay without a valid bound; sample.Unknown: there was none.
	why sample.Reason
	// floors are the smallest delays of each part of the last hour, the present one first; 0: unknown.
	floors [floorParts]time.Duration
}

// add takes one delay. It is above the limits if it exceeds both the largest delay, and the smallest delay of the last hour by the largest
// rise: a delay that is long and steady is no fault. The clocks' error cancels in the rise.
func (l *limited) add(v sample.Delay, o *Options) {
	l.delays++
	if !v.OK() {
		l.unbounded++
		l.why = v.Reason
		return
	}
	if l.floors[0] == 0 || v.Value < l.floors[0] {
		l.floors[0] = v.Value
	}
	switch {
	case v.Value+v.Bound <= o.MaxDelay || v.Value-l.floor() <= o.MaxDelayRise:
	case v.Value-v.Bound > o.MaxDelay:
		l.slow++
	default:
		l.maybeSlow++
	}
}

// floor is the smallest delay of the last hour.
func (l *limited) floor() time.Duration {
	least := l.floors[0]
	for _, f := range l.floors[1:] {
		if f != 0 {
			least = min(least, f)
		}
	}
	return least
}

// next ends a window.
func (l *limited) next() {
	if l.ended++; l.ended < l.windows {
		return
	}
	l.ended = 0
	copy(l.floors[1:], l.floors[:])
	l.floors[0] = 0
}

// way adds the counts to what is known of the direction.
func (l *limited) way(w *pathstate.Way) {
	w.Delays, w.Slow, w.MaybeSlow, w.Unbounded, w.Why = l.delays, l.slow, l.maybeSlow, l.unbounded, unbounded(l.why)
}

// unbounded is why a path's delay is not known, by the reason of a delay.
func unbounded(why sample.Reason) pathstate.Reason {
	switch why {
	case sample.NoClock, sample.ClockSilent, sample.LocalUnsynchronized, sample.LocalStepped:
		return pathstate.LocalClock
	case sample.Unknown, sample.RemoteUnsynchronized, sample.RemoteStepped:
		return pathstate.RemoteClock
	case sample.BoundTooLarge:
		return pathstate.BoundTooWide
	case sample.ClocksApart:
		return pathstate.ClockWrong
	case sample.OK, sample.NoStamp, sample.TransmitBeforeReceive, sample.ResidenceTooLong, sample.WrongFormat, sample.PTPInUTC:
	}
	return pathstate.Timestamps
}
