package clock

import (
	"time"

	"oneway.example/exporter/instant"
)

// Reading is both clocks read at, as nearly as can be, one moment.
type Reading struct {
	// Wall is CLOCK_REALTIME.
	Wall instant.Time
	// Mono is CLOCK_MONOTONIC since some fixed moment of this process.
	Mono time.Duration
}

// offset is Wall minus Mono. It has no meaning of its own; that it changes has.
func (r Reading) offset() time.Duration { return time.Duration(r.Wall) - r.Mono }

// Reader reads both clocks. It must not allocate, and the monotonic clock of
// successive readings must not go back. Tests hand in a Reader that steps.
type Reader func() Reading

// SystemReader reads the system's clocks: one time.Now, which the Go runtime
// answers with two calls into the vDSO.
func SystemReader() Reader {
	base := time.Now()
	return func() Reading {
		now := time.Now()
		return Reading{Wall: instant.Time(now.UnixNano()), Mono: now.Sub(base)}
	}
}
