package gpsd

import (
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

	source follower // whose TPV, SKY and TOFF are taken
	pulser follower // whose PPS are taken

	fix      Fix
	fixAt    time.Time
	seen     Count
	seenAt   time.Time
	used     Count
	usedAt   time.Time
	listedAt time.Time // of the last report that had satellites

	pulse       Reading
	pulseAt     time.Time
	sawtooth    float64
	hasSawtooth bool
	sentence    Reading
	sentenceAt  time.Time

	lastMessage instant.Time
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
		r.source = follower{}
		r.fixAt, r.seenAt, r.usedAt, r.listedAt, r.sentenceAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	}
	if !slices.Contains(r.pool, r.pulser.path) {
		r.pulseAt, r.pulser = time.Time{}, follower{}
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
	r.fix, r.fixAt = Fix(*m.Mode), now
	return true
}

// sky takes the counts that the report has. gpsd 3.22 sends "nSat":0 without a
// list in the middle of a cycle: that is believed once no list has come for heardFor.
func (r *receiver) sky(m *sky, now time.Time) bool {
	if !r.heard(m.Device, now) {
		return false
	}
	if m.Satellites != nil && len(*m.Satellites) > 0 {
		r.listedAt = now
	} else if m.Seen != nil && *m.Seen == 0 && fresh(r.listedAt, now, heardFor) {
		return true
	}
	seen, used := m.count()
	if seen.Known {
		r.seen, r.seenAt = seen, now
	}
	if used.Known {
		r.used, r.usedAt = used, now
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
		r.pulser = follower{}
	}
	if !r.pulser.take(m.Device, now) {
		return false
	}
	r.note(m.Device, now)
	r.pulse, r.pulseAt = m.reading(), now
	r.hasSawtooth = m.QErr != nil
	if r.hasSawtooth {
		r.sawtooth = float64(*m.QErr) * 1e-12
	}
	return true
}

func (r *receiver) told(m *moment, now time.Time) bool {
	if !r.heard(m.Device, now) {
		return false
	}
	r.sentence, r.sentenceAt = m.reading(), now
	return true
}

func fresh(at, now time.Time, limit time.Duration) bool {
	return !at.IsZero() && now.Sub(at) <= limit
}

// state is what is still believed at the moment now.
func (r *receiver) state(now time.Time) State {
	s := State{Connected: r.connected(now), Device: r.source.path, LastMessage: r.lastMessage}
	if s.Device == "" && s.Connected {
		s.Device = r.pool[0]
	}
	if fresh(r.fixAt, now, heardFor) {
		s.Fix = r.fix
	}
	if fresh(r.seenAt, now, heardFor) {
		s.Seen = r.seen
	}
	if fresh(r.usedAt, now, heardFor) {
		s.Used = r.used
	}
	if fresh(r.pulseAt, now, pulseFor) {
		s.Pulse = r.pulse
		if r.hasSawtooth {
			s.Sawtooth, s.HasSawtooth = r.sawtooth, true
		}
	}
	if fresh(r.sentenceAt, now, pulseFor) {
		s.Sentence = r.sentence
	}
	return s
}
