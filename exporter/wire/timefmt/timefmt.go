// Package timefmt holds the time stamp formats of STAMP and the Error Estimate.
package timefmt

import (
	"math/bits"
	"time"

	"oneway.example/exporter/instant"
)

// Format is the Z bit of the Error Estimate: how the stamps of a packet are
// written.
type Format uint8

const (
	// NTP is seconds since 1900 and a binary fraction, 32 bits each, in UTC (RFC
	// 5905 section 6). The seconds wrap in 2036.
	NTP Format = iota
	// PTP is seconds since 1970 and nanoseconds, 32 bits each, on the PTP
	// timescale, TAI (IEEE 1588-2008; RFC 8762 section 4.2.1). The seconds wrap
	// in 2106.
	PTP
)

const ntpEpoch = 2208988800 // seconds from 1900 to 1970

// Encode writes t; tai is TAI-UTC (37 s since 2017), used by PTP only. The zero
// Time, no stamp, becomes 0.
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

// Decode reads what Encode wrote, to the nanosecond. The era, which is not in
// the stamp, is the one that brings it closest to near. 0 becomes the zero Time.
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
