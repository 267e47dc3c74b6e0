package gpsd

import (
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
)

const (
	// reportLifetime is the lifetime of a report. Receivers report every second, slow ones every ten seconds.
	reportLifetime = 15 * time.Second
	// pulseFor is the lifetime of a pulse or a time report: metric.GNSSPulseOffset.
	pulseFor = 5 * time.Second
	// maxPool limits the stored devices; gpsd itself has 4 (MAX_DEVICES).
	maxPool = 16
)

// receiver is the accumulated state of the reports of one connection. The zero value has no data and accepts any device.
type receiver struct {
	wanted     string    // Options.Device
	pool       []string  // the devices that gpsd has open
	foundAt    time.Time // when gpsd opened a device while it had none
	reportedAt time.Time // time of the last report of any of them

	source source
	pulser pulser

	lastMessage instant.Time
}

// source is the device whose TPV, SKY and TOFF are used, and its last values.
type source struct {
	follower
	fix        expiring[Fix]
	seen, used expiring[Count]
	listedAt   time.Time // of the last report with satellites
	sentence   expiring[Reading]
}

// pulser is the device whose PPS are used, and its last values.
type pulser struct {
	follower
	pulse    expiring[Reading]
	sawtooth expiring[float64]
}

// expiring is a value with its time, which is valid for a limited lifetime.
type expiring[T any] struct {
	value T
	at    time.Time
}

// within is the value, or the zero value if it is older than limit.
func (t expiring[T]) within(limit time.Duration, now time.Time) (value T) {
	if fresh(t.at, now, limit) {
		value = t.value
	}
	return value
}

// follower follows one device until it is silent, so that reports of two receivers of one gpsd are not mixed.
type follower struct {
	path string
	at   time.Time
}

func (f *follower) silent(now time.Time) bool { return f.at.IsZero() || now.Sub(f.at) > reportLifetime }

// take reports whether a report of the device is used.
func (f *follower) take(path string, now time.Time) bool {
	if path != f.path && !f.silent(now) {
		return false
	}
	f.path, f.at = path, now
	return true
}

// apply applies one report of parse, and reports whether it came from the receiver.
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
	case *timeEvent:
		if m.pulse {
			return r.pulsed(m, now)
		}
		return r.timeOffset(m, now)
	}
	return false
}

// list replaces the list of devices.
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
	r.removeMissing()
}

// change adds a device to the list or removes it.
func (r *receiver) change(m *device, now time.Time) {
	if m.active() {
		if len(r.pool) == 0 {
			r.foundAt = now
		}
		r.add(m.Path)
		return
	}
	r.pool = slices.DeleteFunc(r.pool, func(path string) bool { return path == m.Path })
	r.removeMissing()
}

func (r *receiver) add(path string) {
	if (r.wanted == "" || path == r.wanted) && len(r.pool) < maxPool && !slices.Contains(r.pool, path) {
		r.pool = append(r.pool, path)
	}
}

// connected reports whether gpsd has opened the receiver's device and receives from it. gpsd 3.22 never removes a device that
// was unplugged during probing, so a device that has been silent for long counts as removed.
func (r *receiver) connected(now time.Time) bool {
	return len(r.pool) > 0 && (fresh(r.reportedAt, now, reportLifetime) || fresh(r.foundAt, now, reportLifetime))
}

// removeMissing discards the values of devices that have been removed.
func (r *receiver) removeMissing() {
	if !slices.Contains(r.pool, r.source.path) {
		r.source = source{}
	}
	if !slices.Contains(r.pool, r.pulser.path) {
		r.pulser = pulser{}
	}
}

// accept reports whether a report of the device counts; a report also shows that the device exists.
func (r *receiver) accept(path string, now time.Time) bool {
	if r.wanted != "" && path != r.wanted {
		return false
	}
	if !r.source.take(path, now) {
		return false // a new device is used only after the values of the previous one have expired
	}
	r.note(path, now)
	return true
}

func (r *receiver) note(path string, now time.Time) {
	r.add(path)
	r.reportedAt, r.lastMessage = now, instant.FromTime(now)
}

func (r *receiver) position(m *position, now time.Time) bool {
	if !r.accept(m.Device, now) {
		return false
	}
	r.source.fix = expiring[Fix]{Fix(*m.Mode), now}
	return true
}

// sky applies the counts of a report. gpsd 3.22 sends "nSat":0 without a list in the middle of a cycle: a zero count is used
// only if there was no list for reportLifetime.
func (r *receiver) sky(m *sky, now time.Time) bool {
	if !r.accept(m.Device, now) {
		return false
	}
	if m.Satellites != nil && len(*m.Satellites) > 0 {
		r.source.listedAt = now
	} else if m.Seen != nil && *m.Seen == 0 && fresh(r.source.listedAt, now, reportLifetime) {
		return true
	}
	seen, used := m.count()
	if seen.Known {
		r.source.seen = expiring[Count]{seen, now}
	}
	if used.Known {
		r.source.used = expiring[Count]{used, now}
	}
	return true
}

// pulsed applies a PPS: of the receiver itself if it sends any, else of any device, such as /dev/pps0 in addition to
// /dev/ttyS0.
func (r *receiver) pulsed(m *timeEvent, now time.Time) bool {
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
	r.pulser.pulse, r.pulser.sawtooth = expiring[Reading]{m.reading(), now}, expiring[float64]{}
	if m.QErr != nil {
		r.pulser.sawtooth = expiring[float64]{float64(*m.QErr) * 1e-12, now}
	}
	return true
}

func (r *receiver) timeOffset(m *timeEvent, now time.Time) bool {
	if !r.accept(m.Device, now) {
		return false
	}
	r.source.sentence = expiring[Reading]{m.reading(), now}
	return true
}

func fresh(at, now time.Time, limit time.Duration) bool {
	return !at.IsZero() && now.Sub(at) <= limit
}

// state is the state with the values that are valid at the time now.
func (r *receiver) state(now time.Time) State {
	s := State{
		Connected: r.connected(now), Device: r.source.path, LastMessage: r.lastMessage,
		Fix: r.source.fix.within(reportLifetime, now), Seen: r.source.seen.within(reportLifetime, now), Used: r.source.used.within(reportLifetime, now),
		Pulse: r.pulser.pulse.within(pulseFor, now), Sentence: r.source.sentence.within(pulseFor, now),
		Sawtooth: r.pulser.sawtooth.within(pulseFor, now), HasSawtooth: fresh(r.pulser.sawtooth.at, now, pulseFor),
	}
	if s.Device == "" && s.Connected {
		s.Device = r.pool[0]
	}
	return s
}

// Fix is the kind of solution of the receiver. The values are those of the mode of TPV.
type Fix uint8

// The kinds of fix. The zero value means that the receiver did not report one or sends no data.
const (
	FixUnknown Fix = iota
	FixNone
	Fix2D
	Fix3D
)

// String is a short name.
func (f Fix) String() string {
	words := [...]string{"unknown", "none", "2D", "3D"}
	if int(f) >= len(words) {
		return fmt.Sprintf("Fix(%d)", uint8(f))
	}
	return words[f]
}

// Count is a number that may be unknown, which is the zero value.
type Count struct {
	N     int
	Known bool
}

// Reading is the difference between system clock and receiver at one event: a pulse, or the arrival of a sentence.
type Reading struct {
	// At is the time of the event by the receiver; zero: no reading.
	At instant.Time
	// Offset is the system clock minus At; positive: the clock is fast.
	Offset time.Duration
	// Precision is gpsd's estimate of the precision, as a power of two in seconds (-20: a microsecond); zero if
	// unknown.
	Precision int
}

// State is the state of the receiver at one time. Unknown and expired values are zero.
type State struct {
	// Replying: gpsd is connected and sends valid reports.
	Replying bool
	// Connected: gpsd is connected, has opened the receiver's device, and has received from it or opened it within the
	// last 15 s.
	Connected bool
	// Release is gpsd's version, such as 3.22.
	Release string
	// Device is the name of the followed device.
	Device string
	// Fix is the kind of solution.
	Fix Fix
	// Seen and Used are the numbers of satellites in view and in the solution.
	Seen, Used Count
	// Pulse is the last pulse per second, and Sawtooth its quantization error as reported by the receiver (qErr, in
	// seconds), if it reports one.
	Pulse       Reading
	Sawtooth    float64
	HasSawtooth bool
	// Sentence is the last time report over the serial line (TOFF): its offset includes the delay of the sentence and the
	// offset of the clock.
	Sentence Reading
	// LastMessage is the time of the receiver's last message by the system clock; it is kept when the connection ends.
	LastMessage instant.Time
}
