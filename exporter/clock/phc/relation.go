// Package phc relates a network card's own clock (PTP hardware clock) to the system clock, so that hardware timestamps
// can be compared with other times.
//
// It reads both clocks together periodically and interpolates linearly between the last two readings. The timescale of
// the card (TAI, or time since its start) does not matter: the line converts its timestamps to the current system
// clock.
package phc

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
)

// Reading is both clocks at one moment.
type Reading struct {
	Device, System instant.Time
	// Uncertainty is the one-sided error bound of System at that moment.
	Uncertainty time.Duration
}

// Reader reads both clocks. Device is one.
type Reader interface{ Read() (Reading, error) }

const (
	// maxAge is how far outside the last two readings a timestamp may lie to be converted. A card's oscillator wanders
	// by some 0.01 ppm over that time: 20 ns.
	maxAge = 2 * time.Second
	// maxFrequencyError is the largest frequency difference of two clocks. The kernel slews the system clock by 500 ppm
	// at most and a card's clock by its own limit; a greater difference means that one of them was stepped between two
	// readings.
	maxFrequencyError = 1e-3
)

// MaxUncertainty is the largest one-sided error bound of a converted timestamp; above it none is converted: the
// kernel's own timestamp is then about as accurate, and depends on less. Reading over PCI Express leaves some 3 us.
const MaxUncertainty = bound.CardConversion

// Relation converts a card's timestamps. It is safe for concurrent use; System does not block. The zero value has no
// readings and converts nothing.
type Relation struct {
	line atomic.Pointer[line]
}

// line passes through two readings; rate is NaN while there is only one.
type line struct {
	last        Reading
	first       instant.Time // Device of the previous reading
	rate        float64      // system seconds per second of the card
	uncertainty time.Duration
}

// Add adds the next reading. A step of either clock discards the earlier ones. Only one goroutine may call it.
func (r *Relation) Add(now Reading) {
	next := &line{last: now, first: now.Device, rate: math.NaN()}
	if before := r.line.Load(); before != nil {
		device, system := now.Device.Sub(before.last.Device), now.System.Sub(before.last.System)
		rate := float64(system) / float64(device)
		if device > 0 && math.Abs(rate-1) <= maxFrequencyError {
			next.rate, next.first = rate, before.last.Device
			next.uncertainty = uncertainty(before, now, device, rate)
		}
	}
	r.line.Store(next)
}

// uncertainty returns the largest error bound of the line through the previous reading and now, which is that at maxAge
// after now.
//
//	u = u_now + (u_before + u_now) maxAge/device + |rate - rate_before| maxAge
//
// The second term is the error of the slope, the third assumes that a change of the slope continues. It covers a clock
// that is slewed, or stepped by too little for Add to detect. The first line has only the nominal rate to compare with.
func uncertainty(before *line, now Reading, device time.Duration, rate float64) time.Duration {
	rateBefore := before.rate
	if math.IsNaN(rateBefore) {
		rateBefore = 1
	}
	age := float64(maxAge)
	slope := float64(before.last.Uncertainty+now.Uncertainty) * age / float64(device)
	return now.Uncertainty + time.Duration(math.Ceil(slope+math.Abs(rate-rateBefore)*age))
}

func (l *line) good() bool {
	return l != nil && !math.IsNaN(l.rate) && l.uncertainty <= MaxUncertainty
}

// System converts a raw timestamp of the card to the system clock. ok is false until there are two readings that agree,
// for a timestamp more than two seconds outside them, and while the error bound exceeds MaxUncertainty.
func (r *Relation) System(raw instant.Time) (at instant.Time, ok bool) {
	l := r.line.Load()
	if !l.good() || raw.Sub(l.last.Device) > maxAge || l.first.Sub(raw) > maxAge {
		return 0, false
	}
	since := float64(raw.Sub(l.last.Device))
	return l.last.System.Add(time.Duration(math.Round(since * l.rate))), true
}

// Uncertainty is the one-sided error bound of a converted timestamp, from the readings of the clocks; ok is false while
// nothing can be converted.
func (r *Relation) Uncertainty() (u time.Duration, ok bool) {
	l := r.line.Load()
	if !l.good() {
		return 0, false
	}
	return l.uncertainty, true
}

// Forget discards all readings: nothing is converted until two more.
func (r *Relation) Forget() { r.line.Store(nil) }

// Interval is the recommended time between readings: half of maxAge.
const Interval = time.Second

// Follow reads the clocks at once and then every interval, until ctx ends or a reading fails; it then discards all
// readings and returns the cause, nil for ctx.
func (r *Relation) Follow(ctx context.Context, from Reader, interval time.Duration) error {
	defer r.Forget()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		now, err := from.Read()
		if err != nil {
			return err
		}
		r.Add(now)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
