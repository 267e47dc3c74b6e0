package gpsd

import (
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/instant"
)

const (
	// heardFor is how long a report is believed. Receivers report every second, slow
	// ones every ten.
	heardFor = 15 * time.Second
	// pulseFor is how long a pulse or a time report is believed: metric.GNSSPulseOffset.
	pulseFor = 5 * time.Second
	// maxPool bounds the devices remembered; gpsd itself has 4 (MAX_DEVICES).
	maxPool = 16
)

// receiver is what the reports of one connection add up to. The zero value knows
// nothing, and takes any device.
type receiver struct {
	wanted  string    // Options.Device
	pool    []string  // the devices that gpsd has open
	foundAt time.Time // when gpsd was seen to have one open, after none
	heardAt time.Time // when any of them was heard last

	source source
	pulser pulser

	lastMessage instant.Time
}

// source is the device whose TPV, SKY and TOFF are taken, and what it has told.
type source struct {
	follower
	fix        told[Fix]
	seen, used told[Count]
	listedAt   time.Time // of the last report that had satellites
	sentence   told[Reading]
}

// pulser is the device whose PPS are taken, and what it has told.
type pulser struct {
	follower
	pulse    told[Reading]
	sawtooth told[float64]
}

// told is a value that was told at a moment, and is believed for some time.
type told[T any] struct {
	value T
	at    time.Time
}

// within is the value, or the zero one if it is older than limit.
func (t told[T]) within(limit time.Duration, now time.Time) (value T) {
	if fresh(t.at, now, limit) {
		value = t.value
	}
	return value
}

// follower sticks to one device until that falls silent, so that two receivers
// on one gpsd do not make one that jumps.
type follower struct {
	path string
	at   time.Time
}

func (f *follower) silent(now time.Time) bool { return f.at.IsZero() || now.Sub(f.at) > heardFor }

// take reports whether a report of the device is to be taken.
func (f *follower) take(path string, now time.Time) bool {
	if path != f.path && !f.silent(now) {
		return false
	}
	f.path, f.at = path, now
	return true
}

// apply takes one report of parse, and reports whether it came from the receiver.
func (r *receiver) apply(report any, now time.Time) bool {
	switch m := report.(type) {
	case *devices:
		r.list(m, now)
	case *device:
		r.change(m, now)
	case *position:
		return r.position(m, now)
	case *sky:
		return r.sky(m, now)
	case *moment:
		if m.pulse {
			return r.pulsed(m, now)
		}
		return r.told(m, now)
	}
	return false
}

// list replaces the pool.
func (r *receiver) list(m *devices, now time.Time) {
	none := len(r.pool) == 0
	r.pool = r.pool[:0]
	for i := range *m.Devices {
		if d := &(*m.Devices)[i]; d.active() {
			r.add(d.Path)
		}
	}
	if none {
		r.foundAt = now
	}
	r.forgetGone()
}

// change adds a device to the pool, or takes it away.
func (r *receiver) change(m *device, now time.Time) {
	if m.active() {
		if len(r.pool) == 0 {
			r.foundAt = now
		}
		r.add(m.Path)
		return
	}
	r.pool = slices.DeleteFunc(r.pool, func(path string) bool { return path == m.Path })
	r.forgetGone()
}

func (r *receiver) add(path string) {
	if (r.wanted == "" || path == r.wanted) && len(r.pool) < maxPool && !slices.Contains(r.pool, path) {
		r.pool = append(r.pool, path)
	}
}

// connected reports whether gpsd has the receiver's device open and hears it. gpsd
// 3.22 keeps a device for ever that was unplugged while it was being probed, so
// that what has long been silent is taken for gone.
func (r *receiver) connected(now time.Time) bool {
	return len(r.pool) > 0 && (fresh(r.heardAt, now, heardFor) || fresh(r.foundAt, now, heardFor))
}

// forgetGone withdraws what devices have said that are there no more.
func (r *receiver) forgetGone() {
	if !slices.Contains(r.pool, r.source.path) {
		r.source = source{}
	}
	if !slices.Contains(r.pool, r.pulser.path) {
		r.pulser = pulser{}
	}
}

// heard reports whether a report of the device counts; what a device says shows
// that it is there, too.
func (r *receiver) heard(path string, now time.Time) bool {
	if r.wanted != "" && path != r.wanted {
		return false
	}
	if !r.source.take(path, now) {
		return false // what the one before said is old when another is taken
	}
	r.note(path, now)
	return true
}

func (r *receiver) note(path string, now time.Time) {
	r.add(path)
	r.heardAt, r.lastMessage = now, instant.FromTime(now)
}

func (r *receiver) position(m *position, now time.Time) bool {
	if !r.heard(m.Device, now) {
		return false
	}
	r.source.fix = told[Fix]{Fix(*m.Mode), now}
	return true
}

// sky takes the counts that the report has. gpsd 3.22 sends "nSat":0 without a
// list in the middle of a cycle: that is believed once no list has come for heardFor.
func (r *receiver) sky(m *sky, now time.Time) bool {
	if !r.heard(m.Device, now) {
		return false
	}
	if m.Satellites != nil && len(*m.Satellites) > 0 {
		r.source.listedAt = now
	} else if m.Seen != nil && *m.Seen == 0 && fresh(r.source.listedAt, now, heardFor) {
		return true
	}
	seen, used := m.count()
	if seen.Known {
		r.source.seen = told[Count]{seen, now}
	}
	if used.Known {
		r.source.used = told[Count]{used, now}
	}
	return true
}

// pulsed takes a PPS: from the receiver itself if it gives any, else from
// whichever device does, such as /dev/pps0 beside /dev/ttyS0.
func (r *receiver) pulsed(m *moment, now time.Time) bool {
	if r.wanted != "" && m.Device != r.wanted {
		return false
	}
	if m.Device == r.source.path {
		r.pulser = pulser{}
	}
	if !r.pulser.take(m.Device, now) {
		return false
	}
	r.note(m.Device, now)
	r.pulser.pulse, r.pulser.sawtooth = told[Reading]{m.reading(), now}, told[float64]{}
	if m.QErr != nil {
		r.pulser.sawtooth = told[float64]{float64(*m.QErr) * 1e-12, now}
	}
	return true
}

func (r *receiver) told(m *moment, now time.Time) bool {
	if !r.heard(m.Device, now) {
		return false
	}
	r.source.sentence = told[Reading]{m.reading(), now}
	return true
}

func fresh(at, now time.Time, limit time.Duration) bool {
	return !at.IsZero() && now.Sub(at) <= limit
}

// state is what is still believed at the moment now.
func (r *receiver) state(now time.Time) State {
	s := State{
		Connected: r.connected(now), Device: r.source.path, LastMessage: r.lastMessage,
		Fix: r.source.fix.within(heardFor, now), Seen: r.source.seen.within(heardFor, now), Used: r.source.used.within(heardFor, now),
		Pulse: r.pulser.pulse.within(pulseFor, now), Sentence: r.source.sentence.within(pulseFor, now),
		Sawtooth: r.pulser.sawtooth.within(pulseFor, now), HasSawtooth: fresh(r.pulser.sawtooth.at, now, pulseFor),
	}
	if s.Device == "" && s.Connected {
		s.Device = r.pool[0]
	}
	return s
}

// Fix is what kind of solution the receiver has. The values are those of TPV's mode.
type Fix uint8

// The kinds of fix. The zero value: the receiver has not said, or is not heard.
const (
	FixUnknown Fix = iota
	FixNone
	Fix2D
	Fix3D
)

// String is a short word for people.
func (f Fix) String() string {
	words := [...]string{"unknown", "none", "2D", "3D"}
	if int(f) >= len(words) {
		return fmt.Sprintf("Fix(%d)", uint8(f))
	}
	return words[f]
}

// Count is a number that may be unknown, which is its zero value.
type Count struct {
	N     int
	Known bool
}

// Reading is the system's clock against the receiver at one event: a pulse, or
// the arrival of a sentence.
type Reading struct {
	// At is the event's time as the receiver tells it; zero: there is no reading.
	At instant.Time
	// Offset is the system's clock minus At; positive: the clock is fast.
	Offset time.Duration
	// Precision is gpsd's guess of the reading's precision, as a power of two in
	// seconds (-20: a microsecond); zero if it did not say.
	Precision int
}

// State is what is known of the receiver at one moment. What is not known, or
// no longer, has its zero value.
type State struct {
	// Answering: gpsd is connected and talks its protocol.
	Answering bool
	// Connected: gpsd is connected, has the receiver's device open, and has heard it
	// or found it in the last 15 s.
	Connected bool
	// Release is gpsd's version, such as 3.22.
	Release string
	// Device is the name of the device that is followed.
	Device string
	// Fix is the kind of solution.
	Fix Fix
	// Seen and Used are the numbers of satellites in view and in the solution.
	Seen, Used Count
	// Pulse is the last pulse per second, and Sawtooth the pulse's error as the
	// receiver itself tells it (qErr, in seconds), if it does.
	Pulse       Reading
	Sawtooth    float64
	HasSawtooth bool
	// Sentence is the last time report over the serial line (TOFF): its offset has
	// the sentence's lateness in it, and that of the clock.
	Sentence Reading
	// LastMessage is when the receiver was last heard, by the system's clock; it
	// outlives the connection.
	LastMessage instant.Time
}
