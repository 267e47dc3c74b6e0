package timefmt

import (
	"math"
	"math/bits"
	"time"
)

// ErrorEstimate is the field of RFC 4656 section 4.1.2 as RFC 8762 section
// 4.2.1 takes it over: S(1) Z(1) Scale(6) Multiplier(8), big end first. The
// error is Multiplier x 2^(Scale-32) seconds. The zero value is not valid.
type ErrorEstimate uint16

const (
	flagS = 1 << 15
	flagZ = 1 << 14
)

// MakeErrorEstimate writes a bound, rounded up; the multiplier is never 0. A
// bound below zero, which no clock has, and one of more than 36 years are
// written as the largest error that the field holds.
func MakeErrorEstimate(bound time.Duration, synchronised bool, f Format) ErrorEstimate {
	e := ErrorEstimate(0)
	if synchronised {
		e |= flagS
	}
	if f == PTP {
		e |= flagZ
	}
	if bound < 0 || bound > 1<<60 {
		return e | 63<<8 | 255
	}
	// Units of 2^-32 s, rounded up.
	hi, lo := bits.Mul64(uint64(bound), 1<<32)
	units, rest := bits.Div64(hi, lo, uint64(time.Second))
	if rest != 0 {
		units++
	}
	scale := 0
	for units > 255 {
		units = (units + 1) / 2
		scale++
	}
	return e | ErrorEstimate(scale<<8) | ErrorEstimate(max(units, 1))
}

// Synchronised is the S bit: the clock follows UTC by an external source.
func (e ErrorEstimate) Synchronised() bool { return e&flagS != 0 }

// Format is the Z bit.
func (e ErrorEstimate) Format() Format { return Format(e >> 14 & 1) }

// Valid is false for a multiplier of 0, which RFC 4656 forbids.
func (e ErrorEstimate) Valid() bool { return e&0xff != 0 }

// Bound is the error, rounded up to a nanosecond; beyond 292 years it is the
// longest duration.
func (e ErrorEstimate) Bound() time.Duration {
	scale, multiplier := int(e>>8&63), float64(e&0xff)
	ns := math.Ceil(math.Ldexp(multiplier, scale-32) * 1e9)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
