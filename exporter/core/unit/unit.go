// Package unit formats numbers with their units: on the terminal, on pages, in drawings and in documents.
package unit

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Unit is what a number counts. The zero value is a plain count; any other text than those below stands after the number.
type Unit string

// The units, as METRICS.md and the reports name them.
const (
	Count          Unit = ""
	Seconds        Unit = "seconds"
	Bytes          Unit = "bytes"
	BytesPerSecond Unit = "bytes_per_second" // shown in bits per second
	Ratio          Unit = "ratio"            // shown in percent
	// PacketBytes is the size of a packet, which has no prefix: "1500 B".
	PacketBytes Unit = "packet_bytes"
	// BufferBytes is the size of a buffer, shown in powers of 1024: "64 KiB".
	BufferBytes Unit = "buffer_bytes"
	// RFactor is the rating R of ITU-T G.107, 0 to 100.
	RFactor Unit = "r_factor"
	// Index is a dimensionless value from -1 to 1, such as Jain's fairness or a correlation.
	Index Unit = "index"
)

// Scale is how the numbers of one row are shown: times Factor, with Symbol. The zero value shows 0.
type Scale struct {
	Factor float64
	// Symbol is the unit with its prefix, such as "ms"; empty: none.
	Symbol string
	unit   Unit
}

// ScaleOf is the scale in which the largest magnitude is at least 1, if there is one.
func (u Unit) ScaleOf(values ...float64) Scale {
	most := 0.0
	for _, v := range values {
		most = max(most, math.Abs(v))
	}
	switch u { //nolint:exhaustive // others have no prefix
	case Seconds:
		switch {
		case most >= 2*3600:
			return Scale{1. / 3600, "h", u}
		case most >= 600:
			return Scale{1. / 60, "min", u}
		case most == 0:
			return Scale{1, "s", u}
		}
		return u.prefixed(most, 1e6, "µs", "ms", "s")
	case Bytes:
		return u.prefixed(most, 1, "B", "kB", "MB", "GB", "TB", "PB", "EB")
	case BytesPerSecond:
		return u.prefixed(most, 8, "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "Pb/s", "Eb/s")
	case Ratio:
		return Scale{100, "%", u}
	case BufferBytes:
		return Scale{1. / 1024, "KiB", u}
	case PacketBytes:
		return Scale{1, "B", u}
	case RFactor, Index:
		return Scale{1, "", u}
	}
	return Scale{1, string(u), u}
}

// prefixed is the first symbol, a thousand times larger than the one before it, with a number that is not rounded to 1000.
func (u Unit) prefixed(most, factor float64, symbols ...string) Scale {
	s := Scale{factor, symbols[0], u}
	for _, symbol := range symbols[1:] {
		if v, err := strconv.ParseFloat(s.Number(most), 64); err == nil && v < 1000 {
			break
		}
		s = Scale{s.Factor / 1000, symbol, u}
	}
	return s
}

// Number is a value in the scale, without the symbol.
func (s Scale) Number(v float64) string {
	v *= s.Factor
	abs := math.Abs(v)
	switch s.unit { //nolint:exhaustive // others have a number of significant digits
	case Ratio:
		switch {
		case abs > 99.9 && abs < 100: // not 100 %, which is all
			return fixed(math.Copysign(math.Min(abs, 99.99), v), 2)
		case abs >= 9.995:
			return significant(v, 3)
		case abs == 0 || abs >= 0.005:
			return fixed(v, 2)
		}
		return significant(v, 1)
	case RFactor:
		return fixed(v, 0)
	case Index:
		return fixed(v, 2)
	case Seconds:
		return significant(v, 3)
	}
	if v == math.Trunc(v) && abs < 1e15 {
		return fixed(v, 0)
	}
	return significant(v, 4)
}

// fixed has so many decimals, and no minus sign before a zero.
func fixed(v float64, places int) string {
	text := strconv.FormatFloat(v, 'f', places, 64)
	if zero := strings.TrimPrefix(text, "-"); strings.Trim(zero, "0.") == "" {
		return zero
	}
	return text
}

// significant has so many significant digits without trailing zeros, and all those before the decimal point; an exponent only of
// numbers that would have many zeros.
func significant(v float64, digits int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v+0, 'f', -1, 64)
	}
	places := digits - 1 - int(math.Floor(math.Log10(math.Abs(v))))
	if places < -15 || places > 12 {
		return strconv.FormatFloat(v, 'g', digits, 64)
	}
	text := strconv.FormatFloat(v, 'f', max(0, places), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Format is a value with its symbol: "30.1 ms".
func (s Scale) Format(v float64) string { return s.FormatWith(" ", v) }

// FormatWith is Format with this separator between number and symbol.
func (s Scale) FormatWith(separator string, v float64) string {
	if s.Symbol == "" {
		return s.Number(v)
	}
	return s.Number(v) + separator + s.Symbol
}

// Format is a single value with its unit: "30.1 ms".
func (u Unit) Format(v float64) string { return u.ScaleOf(v).Format(v) }

// Duration is a duration with its unit.
func Duration(d time.Duration) string { return Seconds.Format(d.Seconds()) }

// Milliseconds are seconds as a column of a table has them: all in one unit, to the microsecond.
func Milliseconds(seconds float64) string {
	return fixed(seconds*1e3, 3) + " ms"
}

// Percent is how much of a whole is done, without decimals: below 100 % until all is.
func Percent(share float64) string {
	return fixed(math.Floor(share*100), 0) + " %"
}
