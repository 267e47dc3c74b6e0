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

	"oneway.example/exporter/core/sample"
)

// leastCoverage is the share of delays, over all scenarios, whose interval holds the truth.
// The interval is a limit and no confidence interval: chance puts no delay outside of it, and
// a busy machine none. One in a thousand is left to the truth's own reading, which is off by up
// to 80 us (Miss.Blur) where the smallest bounds are as large.
const leastCoverage = 0.999

// ErrFaults says that not all is as it must be; what, was printed.
var ErrFaults = errors.New("vmlab: there are faults")

// Print writes one line a scenario, what is wrong, and the LAN check. The error is
// ErrFaults, or nil. A limit of precision that was missed is a fault if asserted, and is
// told in any case.
func Print(w io.Writer, results []*Result, asserted bool) error {
	printScenarios(w, results, asserted)
	printMeans(w, results)
	faults := 0
	fault := func(name, format string, args ...any) {
		faults++
		fmt.Fprintf(w, "FAULT %s: %s\n", name, fmt.Sprintf(format, args...))
	}
	for _, r := range results {
		for _, f := range r.Faults {
			if r.Flaky {
				fmt.Fprintf(w, "FLAKY %s: %s\n", r.Scenario.Name, f)
				continue
			}
			fault(r.Scenario.Name, "%s", f)
		}
		for _, m := range r.Misses() {
			if r.excused(asserted) == "" {
				fault(r.Scenario.Name, "%s", m)
				continue
			}
			fmt.Fprintf(w, "MISSED %s: %s (precision, %s)\n", r.Scenario.Name, m, r.excused(asserted))
		}
		printOutside(w, r)
	}
	if c := total(results).Coverage(); c < leastCoverage {
		fault("all", "the truth is inside the interval of %.3f %% of the delays; want %.1f %%", 100*c, 100*leastCoverage)
	}
	for _, r := range results {
		if r.Scenario.Name == lanName {
			printLAN(w, r.Judgment)
		}
	}
	if faults > 0 {
		return ErrFaults
	}
	return nil
}

func printScenarios(w io.Writer, results []*Result, asserted bool) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\texpected\tseen\tdelays\tvalid\tcoverage\tmedian bound\tmedian error\tworst error\tprecision\ttook\tnot valid because")
	for _, r := range results {
		j := r.Judgment
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.0f s\t%s\n", r.Scenario.Name, states(r.Scenario.States), states(r.Seen), figures(j), r.precision(asserted), r.Took.Seconds(), reasons(j.Reasons))
	}
	sum := total(results)
	fmt.Fprintf(t, "all\t\t\t%d\t%d\t%s\n", sum.Delays, sum.Valid, percent(sum))
	_ = t.Flush()
}

// total counts the delays of all scenarios.
func total(results []*Result) *Judgment {
	sum := &Judgment{}
	for _, r := range results {
		j := r.Judgment
		sum.Delays, sum.Valid, sum.Unjudged, sum.Covered = sum.Delays+j.Delays, sum.Valid+j.Valid, sum.Unjudged+j.Unjudged, sum.Covered+j.Covered
	}
	return sum
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

func figures(j *Judgment) string {
	e := magnitudes(j.Errors)
	return fmt.Sprintf("%d\t%d\t%s\t%s\t%s\t%s", j.Delays, j.Valid, percent(j), figure(quantile(j.Bounds, 0.5)), figure(quantile(e, 0.5)), figure(quantile(e, 1)))
}

func printOutside(w io.Writer, r *Result) {
	const most = 4
	for i, m := range r.Judgment.Worst {
		if i == most {
			fmt.Fprintf(w, "OUTSIDE %s: and others\n", r.Scenario.Name)
			return
		}
		fmt.Fprintf(w, "OUTSIDE %s: packet %d %s: %v +- %v, truly %v (read to +- %v), off by %v\n", r.Scenario.Name, m.Packet.Packet.Seq, m.Direction,
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

func percent(j *Judgment) string {
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
