package unit

import (
	"math"
	"strconv"
)

// plusMinus begins an error bound.
const plusMinus = "±"

// FormatBound is a value with its error bound, both in one scale: "110.70 kB ± 0.78 kB".
func (u Unit) FormatBound(v, bound float64) string {
	value, limit := u.ScaleOf(v, bound).FormatBound(" ", v, bound)
	return value + " " + limit
}

// BoundOrDash is FormatBound, the value alone where the bound is nil, or "-" where the value is.
func (u Unit) BoundOrDash(v, bound *float64) string {
	if v == nil || bound == nil {
		return u.OrDash(v)
	}
	return u.FormatBound(*v, *bound)
}

// FormatLimit is an error bound without the value, rounded up to two significant digits: "± 290 µs".
func (u Unit) FormatLimit(bound float64) string {
	_, limit := u.ScaleOf(bound).FormatBound(" ", 0, bound)
	return limit
}

// FormatBound is a value and its error bound, each with its symbol after the separator: "30.10 ms" and "± 0.20 ms". The bound has
// two significant digits, and the value as many decimals as the bound. The bound includes what the rounding of the value adds, and
// is rounded up, so that the printed interval contains the measured one.
func (s Scale) FormatBound(separator string, v, bound float64) (value, limit string) {
	sign := plusMinus + separator
	if s.isWhole(v) && s.isWhole(bound) {
		return s.FormatWith(separator, v), sign + s.FormatWith(separator, bound)
	}
	v, bound = v*s.Factor, bound*s.Factor
	if !(bound > 0) || math.IsInf(bound, 0) || math.IsNaN(v) || math.IsInf(v, 0) {
		return s.FormatWith(separator, v/s.Factor), sign + s.FormatWith(separator, bound/s.Factor)
	}
	places := min(max(0, 1-int(math.Floor(math.Log10(bound)))), 12)
	value = fixed(v, places)
	if rounded, err := strconv.ParseFloat(value, 64); err == nil {
		bound += math.Abs(rounded - v)
	}
	step := math.Pow(10, max(-float64(places), math.Floor(math.Log10(bound))-1))
	limit = sign + fixed(math.Ceil(bound/step*(1-1e-9))*step, places)
	if s.Symbol != "" {
		value, limit = value+separator+s.Symbol, limit+separator+s.Symbol
	}
	return value, limit
}

// isWhole reports whether the number counts something and is printed as it is.
func (s Scale) isWhole(v float64) bool {
	return (s.unit == Count || s.unit == PacketBytes) && v == math.Trunc(v) && math.Abs(v) < 1e15
}

// MillisecondsLimit is the error bound of values that Milliseconds prints: "± 0.288 ms". It includes the rounding of these values, and is
// rounded up.
func MillisecondsLimit(bound float64) string {
	const step = 1e-6
	return plusMinus + " " + Milliseconds(math.Ceil((bound+step/2)/step*(1-1e-9))*step)
}
