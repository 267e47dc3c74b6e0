// Package timefmt contains the timestamp formats of STAMP and the Error Estimate.
//
//	NTP  0-3 seconds since 1900, UTC   4-7 fraction in units of 2^-32 s
//	PTP  0-3 seconds since 1970, TAI   4-7 nanoseconds
//	Error Estimate  S(1) Z(1) Scale(6) Multiplier(8)
//
// The Z bit of a packet's Error Estimate selects one of the two (RFC 8762 section 4.2.1). Neither includes its era: 32
// bits of seconds wrap after 136 years, so that a reader needs to know roughly when the timestamp was taken.
package timefmt

import (
	"math"
	"math/bits"
	"time"

	"oneway.example/exporter/core/instant"
)

// Format is the Z bit of the Error Estimate: the format of a packet's timestamps. The zero value is NTP, the default of
// RFC 8762 section 4.2.1.
type Format uint8

const (
	// NTP is seconds since 1900 and a binary fraction, 32 bits each, in UTC (RFC
	// 5905 section 6). The seconds wrap on 2036-02-07.
	NTP Format = iota
	// PTP is seconds since 1970 and nanoseconds, 32 bits each, on the PTP
	// timescale, TAI (the truncated format of IEEE 1588-2008; RFC 8762 section
	// 4.2.1, RFC 8877 section 4.3). The seconds wrap in 2106.
	PTP
)

// TAIOffset is TAI-UTC since 2017.
const TAIOffset = 37 * time.Second

const (
	ntpEpoch = 2208988800 // seconds from 1900 to 1970 (RFC 868)
	second   = int64(time.Second)
	era      = int64(1) << 32 // seconds
)

// Encode returns t in wire format; tai is TAI-UTC (TAIOffset), used by PTP only. The zero Time, no timestamp,
// becomes 0, and no other does. Decode returns the same nanosecond, except for the one in 136 years whose PTP form
// would be 0: Encode writes the next one.
func (f Format) Encode(t instant.Time, tai time.Duration) uint64 {
	if t.IsZero() {
		return 0
	}
	if f == PTP {
		t = t.Add(tai)
	}
	sec, ns := int64(t)/second, int64(t)%second
	if ns < 0 {
		sec, ns = sec-1, ns+second
	}
	low := uint64(ns)
	if f != PTP {
		sec += ntpEpoch
		// Rounded up, for readers that round down.
		low = (low<<32 + uint64(second) - 1) / uint64(second)
	}
	// The instant at which the seconds wrap must not encode as no timestamp. In NTP 1 is 0.23 ns later, which Decode
	// rounds away.
	return max(uint64(uint32(sec))<<32|low, 1)
}

// Decode reads a timestamp in wire format, to the nearest nanosecond: the exact one if the writer had whole
// nanoseconds, however it rounded their binary fraction. The era, which the timestamp does not include, is the one
// closest to local; tai is TAI-UTC, used by PTP only. 0, and a PTP timestamp with a second or more of nanoseconds,
// become the zero Time: no timestamp.
func (f Format) Decode(raw uint64, tai time.Duration, local instant.Time) instant.Time {
	sec, low := int64(raw>>32), raw&(1<<32-1)
	if raw == 0 || f == PTP && low >= uint64(second) {
		return 0
	}
	ns := int64(low)
	if f != PTP {
		sec -= ntpEpoch
		// The product is below 2^62. The sum may be a whole second: FromUnix carries.
		ns = int64((low*uint64(second) + 1<<31) >> 32)
	}
	localSec := int64(local) / second
	for sec-localSec > era/2 {
		sec -= era
	}
	for localSec-sec > era/2 {
		sec += era
	}
	t := instant.FromUnix(sec, ns)
	if f == PTP {
		t = t.Add(-tai)
	}
	return t
}

// ErrorEstimate is the field of RFC 4656 section 4.1.2 as in RFC 8762 section 4.2.1: S(1) Z(1) Scale(6) Multiplier(8),
// big-endian. The error is Multiplier x 2^(Scale-32) seconds: from 0.23 ns to 17,000 years. The zero value is not
// valid.
type ErrorEstimate uint16

const (
	flagS         = 1 << 15
	flagZ         = 1 << 14
	scaleShift    = 8
	scaleMask     = 63
	multiplierMax = 255
	largestError  = scaleMask<<scaleShift | multiplierMax
)

// MakeErrorEstimate encodes a clock error bound, rounded up by less than 1 % or, below 60 ns, by less than 0.24 ns; the
// multiplier is never 0. An invalid bound below zero, and the longest duration, which an infinite sum or Bound returns,
// are encoded as the largest error of the field: a fault in the arithmetic must not look like a small error. With
// synchronized false that is 0x3fff, or 0x7fff with timestamps in PTP format, and means that the error is unknown.
func MakeErrorEstimate(bound time.Duration, synchronized bool, f Format) ErrorEstimate {
	e := ErrorEstimate(0)
	if synchronized {
		e |= flagS
	}
	if f == PTP {
		e |= flagZ
	}
	if bound < 0 || bound == math.MaxInt64 {
		return e | largestError
	}
	// Units of 2^-32 s, which beyond 36 years exceed 64 bits, or of 2^-24 s. Each halving rounds up, which equals one
	// division that rounds up.
	fraction, scale := uint(32), 0
	if bound >= 1<<60 {
		fraction, scale = 24, 8
	}
	hi, lo := bits.Mul64(uint64(bound), 1<<fraction)
	units, rest := bits.Div64(hi, lo, uint64(time.Second))
	if rest != 0 {
		units++
	}
	for ; units > multiplierMax; scale++ {
		units = (units + 1) / 2
	}
	return e | ErrorEstimate(scale<<scaleShift) | ErrorEstimate(max(units, 1))
}

// Synchronized is the S bit: the clock is synchronized to UTC by an external source.
func (e ErrorEstimate) Synchronized() bool { return e&flagS != 0 }

// Format is the Z bit: the format of the same packet's timestamps.
func (e ErrorEstimate) Format() Format { return Format(e >> 14 & 1) }

// Valid is false for a multiplier of 0, which RFC 4656 section 4.1.2 forbids: then the error is unknown.
func (e ErrorEstimate) Valid() bool { return e&multiplierMax != 0 }

// Bound is the error, rounded up to a nanosecond; beyond 292 years it is the longest duration. It is 0 if and only if e
// is not Valid, and has no meaning then.
func (e ErrorEstimate) Bound() time.Duration {
	scale, multiplier := int(e>>scaleShift&scaleMask), float64(e&multiplierMax)
	// 8 bits times the 30 of 10^9: the product is exact.
	ns := math.Ceil(math.Ldexp(multiplier, scale-32) * 1e9)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
