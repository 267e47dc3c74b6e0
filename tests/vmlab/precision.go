package vmlab

import (
	"cmp"
	"fmt"
	"time"

	"oneway.example/exporter/core/sample"
)

// Limits of precision in the steady state, with a pulse: the errors of clocks and timestamps on a
// quiet machine. Other load of the machine changes them, and makes nothing
// false: an interval grows, and still contains the truth.
const (
	mostBound = 100 * time.Microsecond
	mostError = 30 * time.Microsecond
)

// steady: the clocks are not disturbed.
func (s *Scenario) steady() bool { return s.Name == steadyName || s.Name == lanName }

// Spoiled reports whether a repeatable scenario missed a limit of precision.
// It does not apply to coverage, states and signs.
func (r *Result) Spoiled() bool { return r.Scenario.steady() && len(r.Misses()) > 0 }

// Misses are the missed limits of precision.
func (r *Result) Misses() (missed []string) {
	missed = append(missed, r.Missed...)
	miss := func(format string, args ...any) { missed = append(missed, fmt.Sprintf(format, args...)) }
	j, most := r.Judgment, cmp.Or(r.Scenario.MostBound, mostBound)
	if r.Scenario.steady() {
		checkPositive(j, miss)
	}
	switch r.Scenario.Name {
	case lanName:
		checkLAN(j, miss)
	case steadyName:
		if b := quantile(j.Bounds, 0.5); b >= most {
			miss("the median bound is %v; want less than %v", b, most)
		}
		if e := quantile(magnitudes(j.Errors), 0.5); e >= mostError {
			miss("the median error is %v; want less than %v", e, mostError)
		}
	}
	return missed
}

// checkPositive requires delays, none below zero: the shortest path of two guests is 15 us
// long, so clocks must be that accurate. That none is below zero by more than its bound is
// asserted of every delay (Judgment.Impossible).
func checkPositive(j *Judgment, miss func(format string, args ...any)) {
	for dir, v := range j.Values {
		if least := quantile(v, 0); len(v) == 0 || least <= 0 {
			miss("the smallest of %d delays %s is %v; want more than 0", len(v), sample.Direction(dir), least)
		}
	}
}

// excused is the reason why a miss is no fault; empty: it is one.
func (r *Result) excused(asserted bool) string {
	switch {
	case r.Repeated:
		return "run again"
	case !asserted:
		return "not asserted"
	}
	return ""
}

// precision is its word in the table.
func (r *Result) precision(asserted bool) string {
	switch why := r.excused(asserted); {
	case len(r.Misses()) > 0 && why != "":
		return "missed, " + why
	case len(r.Misses()) > 0:
		return "missed"
	case r.Scenario.steady():
		return "kept"
	}
	return "-"
}
