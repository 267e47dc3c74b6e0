// Package phc relates a network card's own clock (PTP hardware clock) to the
// system clock, so that hardware stamps can be compared with other times.
//
// It reads both clocks together from time to time and draws a line through the
// last two readings. The timescale of the card (TAI, or counting from its start)
// does not matter: the line takes its stamps to the system clock, as it is.
package phc

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/instant"
)

// Reading is both clocks at one moment.
type Reading struct {
	Device, System instant.Time
	// Uncertainty is how far System may be off at that moment, one-sided.
	Uncertainty time.Duration
}

// Reader reads both clocks. Device is one.
type Reader interface{ Read() (Reading, error) }

const (
	// maxAge is how far from the last two readings a stamp is converted. A
	// card's oscillator wanders by some 0.01 ppm over that time: 20 ns.
	maxAge = 2 * time.Second
	// maxFrequencyError: two clocks do not differ by more. The kernel slews the
	// system clock by 500 ppm at most and a card's clock by its own limit; a
	// greater difference means that one of them was stepped between two readings.
	maxFrequencyError = 1e-3
)

// MaxUncertainty is how far a converted stamp may be off, one-sided, before
// none is converted any more: the kernel's own stamp is then about as good, and
// simpler to believe. Reading over PCI Express leaves some 3 us.
const MaxUncertainty = bound.CardConversion

// Relation converts a card's stamps. It is safe for concurrent use; System does
// not block. The zero value knows nothing yet and converts nothing.
type Relation struct {
	line atomic.Pointer[line]
}

// line goes through two readings; rate is NaN while there is only one.
type line struct {
	last        Reading
	first       instant.Time // Device of the reading before
	rate        float64      // system seconds per second of the card
	uncertainty time.Duration
}

// Add takes the next reading. After a step of either clock the earlier ones are
// forgotten. Only one goroutine may call it.
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

// uncertainty of the line through the reading before and now, where it is worst:
// maxAge beyond now.
//
//	u = u_now + (u_before + u_now) maxAge/device + |rate - rate_before| maxAge
//
// The second term is the slope's, the third takes a change of the slope to go
// on. A clock that is slewed, or stepped by too little for Add to see, shows in
// it. The first line has none to compare with but the nominal rate.
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

// System converts a raw stamp of the card to the system clock. ok is false
// until there are two readings that agree, for a stamp that lies more than two
// seconds outside of them, and while MaxUncertainty is exceeded.
func (r *Relation) System(raw instant.Time) (at instant.Time, ok bool) {
	l := r.line.Load()
	if !l.good() || raw.Sub(l.last.Device) > maxAge || l.first.Sub(raw) > maxAge {
		return 0, false
	}
	since := float64(raw.Sub(l.last.Device))
	return l.last.System.Add(time.Duration(math.Round(since * l.rate))), true
}

// Uncertainty is how far a converted stamp may be off, one-sided, by the
// readings of the clocks; ok is false while nothing can be converted.
func (r *Relation) Uncertainty() (u time.Duration, ok bool) {
	l := r.line.Load()
	if !l.good() {
		return 0, false
	}
	return l.uncertainty, true
}

// Forget drops what is known: nothing is converted until two more readings.
func (r *Relation) Forget() { r.line.Store(nil) }

// Interval is a good time between readings: half of what a line is good for.
const Interval = time.Second

// Follow reads the clocks at once and then every interval, until ctx ends or a
// reading fails; it then forgets and returns the cause, nil for ctx.
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
