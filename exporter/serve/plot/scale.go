package plot

import (
	"math"
	"strconv"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

// scale maps the values of an axis to pixels.
type scale struct {
	axis      report.Axis
	from, to  float64 // pixels
	low, high float64 // values
	ticks     []float64
	shown     unit.Scale // of all ticks of a linear axis
	digits    int        // of their fractions
}

// newScale returns a scale without values. A linear one includes 0.
func newScale(a report.Axis, from, to float64) scale {
	s := scale{axis: a, from: from, to: to}
	if a.Log {
		s.low, s.high = math.Inf(1), math.Inf(-1)
	}
	return s
}

// shows reports whether a value is in the range of the axis. NaN is not.
func (s *scale) shows(v float64) bool { return math.Abs(v) <= largest && (!s.axis.Log || v >= least) }

func (s *scale) include(v float64) { s.low, s.high = min(s.low, v), max(s.high, v) }

// close ends the range, at a tick if whole or near one, and chooses the ticks.
func (s *scale) close(whole bool) {
	if s.axis.Log {
		s.closeLog()
		return
	}
	if s.high-s.low < least {
		s.low, s.high = 0, 1
	}
	s.shown = s.axis.Unit.ScaleOf(s.high, s.low)
	step := niceStep((s.high - s.low) * s.shown.Factor / 5)
	s.digits = max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	first, last := math.Floor(s.low*s.shown.Factor/step+1e-9), math.Ceil(s.high*s.shown.Factor/step-1e-9)
	if end := last * step / s.shown.Factor; end-s.high < 0.05*(s.high-s.low) {
		s.high = max(s.high, end)
	}
	for i := first; i <= last; i++ {
		if v := i * step / s.shown.Factor; whole || v >= s.low-least && v <= s.high*(1+1e-9) {
			s.ticks = append(s.ticks, v)
		}
	}
	if whole {
		s.low, s.high = s.ticks[0], s.ticks[len(s.ticks)-1]
	}
}

// closeLog has ticks at 1, 2 and 5 times the powers of ten, or at the powers only if these are many.
func (s *scale) closeLog() {
	if s.low > s.high {
		s.low, s.high = 1, 10
	}
	s.low, s.high = s.low/1.1, s.high*1.1
	for _, among := range [][]float64{{1, 2, 5}, {1}} {
		s.ticks = nil
		for e := math.Floor(math.Log10(s.low)); e <= math.Log10(s.high); e++ {
			for _, m := range among {
				if v := m * math.Pow(10, e); v >= s.low && v <= s.high {
					s.ticks = append(s.ticks, v)
				}
			}
		}
		if len(s.ticks) <= 8 {
			return
		}
	}
	for len(s.ticks) > 8 {
		kept := s.ticks[:0]
		for i := 0; i < len(s.ticks); i += 2 {
			kept = append(kept, s.ticks[i])
		}
		s.ticks = kept
	}
}

// at is the position of a value.
func (s *scale) at(v float64) float64 {
	if s.axis.Log {
		return s.from + math.Log(v/s.low)/math.Log(s.high/s.low)*(s.to-s.from)
	}
	return s.from + (v-s.low)/(s.high-s.low)*(s.to-s.from)
}

// label is the text of a tick; its unit is in the axis' name, or with it on a logarithmic axis.
func (s *scale) label(v float64) string {
	if s.axis.Log {
		return s.axis.Unit.Format(v)
	}
	if v *= s.shown.Factor; math.Abs(v) >= 1e5 { // a unit without prefixes
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v+0, 'f', s.digits, 64)
}

// name is the name of the axis, with the unit of its ticks.
func (s *scale) name() string {
	if s.axis.Log || s.shown.Symbol == "" {
		return s.axis.Name
	}
	return s.axis.Name + ", " + s.shown.Symbol
}

// niceStep is the least 1, 2 or 5 times a power of ten that is at least v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}
