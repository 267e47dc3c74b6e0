package timefmt

import (
	"math"
	"math/bits"
	"time"
)

// ErrorEstimate is the field of RFC 4656 section 4.1.2 as RFC 8762 section
// 4.2.1 takes it over: S(1) Z(1) Scale(6) Multiplier(8), big end first. The
// error is Multiplier x 2^(Scale-32) seconds: from 0.23 ns to 17,000 years. The
// zero value is not valid.
type ErrorEstimate uint16

const (
	flagS         = 1 << 15
	flagZ         = 1 << 14
	scaleShift    = 8
	scaleMask     = 63
	multiplierMax = 255
	largestError  = scaleMask<<scaleShift | multiplierMax
)

// MakeErrorEstimate writes a bound on the clock's error, rounded up by less than
// 1 % or, below 60 ns, by less than 0.24 ns; the multiplier is never 0. A bound
// below zero, which no clock has, and the longest duration, in which sums and Bound end
// that have no end, are written as the largest error that the field holds: a fault in
// the arithmetic that led to it must not look like a good clock. With synchronised
// false that is 0x3fff, or 0x7fff with stamps in PTP format, and means that nothing is
// known.
func MakeErrorEstimate(bound time.Duration, synchronised bool, f Format) ErrorEstimate {
	e := ErrorEstimate(0)
	if synchronised {
		e |= flagS
	}
	if f == PTP {
		e |= flagZ
	}
	if bound < 0 || bound == math.MaxInt64 {
		return e | largestError
	}
	// Units of 2^-32 s, which beyond 36 years are too many for 64 bits, or of
	// 2^-24 s. Each halving rounds up, which is as good as one division that does.
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

// Synchronised is the S bit: the clock follows UTC by an external source.
func (e ErrorEstimate) Synchronised() bool { return e&flagS != 0 }

// Format is the Z bit: how the stamps of the same packet are written.
func (e ErrorEstimate) Format() Format { return Format(e >> 14 & 1) }

// Valid is false for a multiplier of 0, which RFC 4656 section 4.1.2 forbids:
// then nothing is known of the error.
func (e ErrorEstimate) Valid() bool { return e&multiplierMax != 0 }

// Bound is the error, rounded up to a nanosecond; beyond 292 years it is the
// longest duration. It is 0 if and only if e is not Valid, and means nothing then.
func (e ErrorEstimate) Bound() time.Duration {
	scale, multiplier := int(e>>scaleShift&scaleMask), float64(e&multiplierMax)
	// 8 bits times the 30 of 10^9: the product is exact.
	ns := math.Ceil(math.Ldexp(multiplier, scale-32) * 1e9)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
