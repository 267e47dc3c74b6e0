package pps

import (
	"errors"
	"math"
	"time"

	"oneway.example/exporter/instant"
)

// kernel is what is asked of the operating system, so that tests can lie.
type kernel interface {
	// open opens a device and checks that it stamps the edge.
	open(path string, clear bool) (device, error)
	// clocks reads both clocks at one moment.
	clocks() reading
}

// device is an open source of pulses.
type device interface {
	// fetch waits for the next edge of either kind and says when the last of the
	// wanted kind was; errNoEvent after the timeout.
	fetch(timeout time.Duration) (event, error)
	// present fails if the path no longer leads to this device: the kernel lets
	// a reader wait for ever on a device that was removed.
	present() error
	close()
}

// errNoEvent: nothing has happened in time.
var errNoEvent = errors.New("pps: no pulse in time")

// event is an edge.
type event struct {
	sequence uint32
	at       instant.Time // CLOCK_REALTIME; zero if the kernel's stamp makes no sense
}

// reading is CLOCK_REALTIME and CLOCK_MONOTONIC_RAW at one moment, +- blur.
type reading struct {
	wall      instant.Time
	raw, blur time.Duration
}

const (
	// usualSlew is the largest frequency that the kernel's clock discipline takes
	// (500 ppm, MAXFREQ in linux/timex.h).
	usualSlew = 500e-6
	// largestSlew is the most that frequency and tick together allow.
	largestSlew = 0.11
	// tooVague is the RawError above which a pulse is not worth judging: twice the
	// judge's threshold. In a user-mode-linux guest, where a clock read takes tens of
	// microseconds, 10 to 60 us are usual.
	tooVague = 200 * time.Microsecond
)

// Why a pulse cannot be placed on the raw clock.
var (
	errNoTime = errors.New("the stamp is no time")
	errFuture = errors.New("the stamp is in the future")
	errLate   = errors.New("read too late after the pulse")
)

// place finds the pulse on the raw clock. slew is how much faster CLOCK_REALTIME
// went than the raw clock of late, as a ratio.
func place(e event, now reading, slew float64) (Pulse, error) {
	if e.at <= 0 || now.wall <= 0 {
		return Pulse{}, errNoTime
	}
	age := now.wall.Sub(e.at)
	switch {
	case now.blur > tooVague:
		return Pulse{}, errLate
	case age < -now.blur:
		return Pulse{}, errFuture
	}
	apart := max(0, float64(age)) * max(usualSlew, 2*math.Abs(slew))
	if apart > float64(tooVague-now.blur) || age > now.raw {
		return Pulse{}, errLate
	}
	return Pulse{
		Sequence: e.sequence,
		Assert:   e.at,
		Raw:      now.raw - age,
		RawError: now.blur + time.Duration(math.Ceil(apart)),
	}, nil
}

// slewBetween is how much faster CLOCK_REALTIME went than the raw clock between two
// readings; zero if it was stepped or if the readings are too far apart to tell.
func slewBetween(a, b reading) float64 {
	gone := b.raw - a.raw
	if gone < time.Second/10 || gone > 10*time.Second {
		return 0
	}
	slew := float64(b.wall.Sub(a.wall)-gone) / float64(gone)
	if math.Abs(slew) > largestSlew {
		return 0
	}
	return slew
}
