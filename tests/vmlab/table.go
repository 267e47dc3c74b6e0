package vmlab

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"oneway.example/exporter/sample"
)

// Limits of the whole run.
const (
	// leastCoverage is the share of delays, over all scenarios, whose interval holds the truth.
	leastCoverage = 0.999
	// With a pulse, in the steady state.
	mostBound = 100 * time.Microsecond
	mostError = 30 * time.Microsecond
)

// ErrFaults says that not all is as it must be; what, was printed.
var ErrFaults = errors.New("vmlab: there are faults")

// Print writes one line a scenario, what is wrong, and the LAN check. The error is
// ErrFaults, or nil.
func Print(w io.Writer, results []*Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\texpected\tseen\tdelays\tvalid\tcoverage\tmedian bound\tmedian error\tworst error\ttook\tnot valid because")
	sum := &Judgement{}
	for _, r := range results {
		j := r.Judgement
		sum.Delays, sum.Valid, sum.Unjudged, sum.Covered = sum.Delays+j.Delays, sum.Valid+j.Valid, sum.Unjudged+j.Unjudged, sum.Covered+j.Covered
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.0f s\t%s\n", r.Scenario.Name, states(r.Scenario.States), states(r.Seen), figures(j), r.Took.Seconds(), reasons(j.Reasons))
	}
	fmt.Fprintf(t, "all\t\t\t%d\t%d\t%s\n", sum.Delays, sum.Valid, percent(sum))
	_ = t.Flush()
	printMeans(w, results)
	faults := 0
	fault := func(name, format string, args ...any) {
		faults++
		fmt.Fprintf(w, "FAULT %s: %s\n", name, fmt.Sprintf(format, args...))
	}
	for _, r := range results {
		for _, f := range r.Faults {
			fault(r.Scenario.Name, "%s", f)
		}
		report := func(format string, args ...any) { fault(r.Scenario.Name, format, args...) }
		if r.Scenario.steady() {
			checkPositive(r.Judgement, report)
		}
		if !r.Repeated {
			r.checkLimits(report)
		}
		printMisses(w, r)
	}
	if c := sum.Coverage(); c < leastCoverage {
		fault("all", "the truth is inside the interval of %.3f %% of the delays; want %.1f %%", 100*c, 100*leastCoverage)
	}
	for _, r := range results {
		if r.Scenario.Name == lanName {
			printLAN(w, r.Judgement)
		}
	}
	if faults > 0 {
		return ErrFaults
	}
	return nil
}

// printMeans writes by which metric a scenario was seen, and which alert tells of it.
func printMeans(w io.Writer, results []*Result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tmetric\talert")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.Scenario.Name, r.Scenario.Metric, cmp.Or(r.Scenario.Alert, "-"))
	}
	_ = t.Flush()
}

func figures(j *Judgement) string {
	e := magnitudes(j.Errors)
	return fmt.Sprintf("%d\t%d\t%s\t%s\t%s\t%s", j.Delays, j.Valid, percent(j), figure(quantile(j.Bounds, 0.5)), figure(quantile(e, 0.5)), figure(quantile(e, 1)))
}

// steady: nothing happens to the clocks.
func (s *Scenario) steady() bool { return s.Name == steadyName || s.Name == lanName }

// Spoiled tells whether a limit of the steady state was not kept that a busy host can
// spoil. Coverage, states and signs are never so excused.
func (r *Result) Spoiled() bool {
	spoiled := false
	r.checkLimits(func(string, ...any) { spoiled = true })
	return spoiled
}

// checkLimits holds the steady state against the limits; other scenarios have none.
func (r *Result) checkLimits(fault func(format string, args ...any)) {
	j, most := r.Judgement, cmp.Or(r.Scenario.MostBound, mostBound)
	switch r.Scenario.Name {
	case lanName:
		checkLAN(j, fault)
	case steadyName:
		if b := quantile(j.Bounds, 0.5); b >= most {
			fault("the median bound is %v; want less than %v", b, most)
		}
		if e := quantile(magnitudes(j.Errors), 0.5); e >= mostError {
			fault("the median error is %v; want less than %v", e, mostError)
		}
	}
}

// checkPositive wants delays, none of them below zero.
func checkPositive(j *Judgement, fault func(format string, args ...any)) {
	for dir, v := range j.Values {
		if least := quantile(v, 0); len(v) == 0 || least <= 0 {
			fault("the smallest of %d delays %s is %v; want more than 0", len(v), sample.Direction(dir), least)
		}
	}
}

func printMisses(w io.Writer, r *Result) {
	const most = 4
	for i, m := range r.Judgement.Worst {
		if i == most {
			fmt.Fprintf(w, "MISS  %s: and others\n", r.Scenario.Name)
			return
		}
		fmt.Fprintf(w, "MISS  %s: packet %d %s: %v +- %v, truly %v (read to +- %v), off by %v\n", r.Scenario.Name, m.Packet.Packet.Seq, m.Direction,
			m.Delay.Value, m.Delay.Bound, m.True, m.Blur, m.Delay.Value-m.True)
	}
}

// states shortens a long sequence in the middle.
func states(s []string) string {
	const most = 6
	if len(s) > most {
		s = slices.Concat(s[:most-2], []string{"..."}, s[len(s)-2:])
	}
	return strings.Join(s, " > ")
}

func percent(j *Judgement) string {
	if j.Judged() == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f %%", 100*j.Coverage())
}

func figure(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return fmt.Sprintf("%.1f us", float64(d)/1e3)
	}
	return fmt.Sprintf("%.2f ms", float64(d)/1e6)
}

func reasons(m map[sample.Reason]int) string {
	var text []string
	for _, r := range sample.Reasons() {
		if m[r] > 0 {
			text = append(text, fmt.Sprintf("%s %d", r, m[r]))
		}
	}
	return strings.Join(text, ", ")
}
