// Package timefmt holds the time stamp formats of STAMP and the Error Estimate.
package timefmt

import (
	"math/bits"
	"time"

	"oneway.example/exporter/instant"
)

// Format is the Z bit.
type Format uint8

const (
	NTP Format = iota
	PTP
)

const ntpEpoch = 2208988800 // seconds from 1900 to 1970

func (f Format) Encode(t instant.Time, tai time.Duration) uint64 {
	if t.IsZero() {
		return 0
	}
	if f == PTP {
		t = t.Add(tai)
	}
	sec, ns := int64(t)/1e9, int64(t)%1e9
	if ns < 0 {
		sec, ns = sec-1, ns+1e9
	}
	if f == PTP {
		return uint64(uint32(sec))<<32 | uint64(ns)
	}
	// Rounded up: Decode rounds down and finds the same nanosecond.
	frac := (uint64(ns)<<32 + 1e9 - 1) / 1e9
	return uint64(uint32(sec+ntpEpoch))<<32 | frac
}

func (f Format) Decode(raw uint64, tai time.Duration, near instant.Time) instant.Time {
	if raw == 0 {
		return 0
	}
	sec := int64(raw >> 32)
	low := raw & (1<<32 - 1)
	ns := int64(low)
	if f == NTP {
		sec -= ntpEpoch
		hi, lo := bits.Mul64(low, 1e9)
		ns = int64(hi<<32 | lo>>32)
	}
	nearSec := int64(near) / 1e9
	const era = int64(1) << 32
	for sec-nearSec > era/2 {
		sec -= era
	}
	for nearSec-sec > era/2 {
		sec += era
	}
	t := instant.FromUnix(sec, ns)
	if f == PTP {
		t = t.Add(-tai)
	}
	return t
}
