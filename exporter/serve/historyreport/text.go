package historyreport

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/history"
)

// percent is a ratio in percent, with one decimal below 10 %, and two below 0.1 %.
func percent(v float64) string {
	v *= 100
	places := 0
	switch a := math.Abs(v); {
	case math.IsInf(v, 0):
		return "?"
	case a != 0 && a < 0.095:
		places = 2
	case a < 9.95 && math.Abs(a-math.Round(a)) >= 0.05:
		places = 1
	}
	text := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Trim(text, "-0.") == "" {
		return "0"
	}
	return text
}

// ratioText is "5 % (-2..11 %)".
func ratioText(e history.Estimate) string {
	return fmt.Sprintf("%s %% (%s..%s %%)", percent(e.Value), percent(e.Low), percent(e.High))
}

// valueText is the same in the unit of the measure: "1.2 ms (0.4..2.0 ms)".
func valueText(u unit.Unit, e history.Estimate) string {
	known := []float64{e.Value}
	for _, v := range []float64{e.Low, e.High} {
		if !math.IsInf(v, 0) {
			known = append(known, v)
		}
	}
	scale := u.ScaleOf(known...)
	limit := func(v float64) string {
		if math.IsInf(v, 0) {
			return "?"
		}
		return scale.Number(v)
	}
	return fmt.Sprintf("%s (%s..%s)", scale.Format(e.Value), limit(e.Low), limit(e.High))
}

// verdictOf is a verdict with its words.
func verdictOf(v history.Verdict) Verdict {
	d := Verdict{Outcome: string(v.Outcome), MoreDays: v.MoreDays, Reason: string(v.Reason)}
	switch v.Outcome {
	case history.Differs:
		d.AtLeast = &v.AtLeast
		if d.Text = "differs by at least " + percent(v.AtLeast) + " %"; v.AtLeast == 0 {
			d.Text = "differs"
		}
	case history.Equal:
		d.Within = &v.Within
		d.Text = "equal within " + percent(v.Within) + " %"
		if d.PartHours = v.Hours; v.Hours > 1 {
			d.Text += fmt.Sprintf(" between parts of the day of %d hours", v.Hours)
		}
	default:
		d.Text = "cannot tell: " + d.Reason
		switch {
		case v.MoreDays >= history.MostDays:
			d.Text = "cannot tell, needs more than 10 more years"
		case v.MoreDays > 0:
			d.Text = "cannot tell, needs about " + unit.Counted(v.MoreDays, "more day", "more days")
		}
	}
	return d
}

// clockTime is the form of times in the text.
const clockTime = "2006-01-02 15:04"
