package vmlab

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"oneway.example/exporter/sample"
)

// Print writes one line a scenario, and below the table what is wrong.
func Print(w io.Writer, results []*Result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\texpected\tseen\tdelays\tvalid\tcoverage\tmedian bound\tmedian error\tworst error\tnot valid because\ttook")
	for _, r := range results {
		j := r.Judgement
		e := magnitudes(j.Errors)
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%.0f s\n", r.Scenario.Name, states(r.Scenario.States), states(r.Seen),
			j.Delays, j.Valid, percent(j), figure(quantile(j.Bounds, 0.5)), figure(quantile(e, 0.5)), figure(quantile(e, 1)),
			reasons(j.Reasons), r.Took.Seconds())
	}
	_ = t.Flush()
	for _, r := range results {
		for _, f := range r.Faults {
			fmt.Fprintf(w, "FAULT %s: %s\n", r.Scenario.Name, f)
		}
		for _, m := range r.Judgement.Worst {
			fmt.Fprintf(w, "MISS  %s: seq %d %s: %v +- %v, truly %v (blur %v), off by %v\n", r.Scenario.Name, m.Packet.Packet.Seq, m.Direction,
				m.Delay.Value, m.Delay.Bound, m.True, m.Blur, m.Delay.Value-m.True)
		}
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

// PrintLAN writes the thesis's check beside what the steady scenario gave.
func PrintLAN(w io.Writer, j *Judgement) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LAN check (figure 4.3)\tpaper\toneway, forward\toneway, reverse\ttruth, forward\ttruth, reverse")
	row := func(name, paper string, f func(v []time.Duration) string) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", name, paper, f(j.Values[0]), f(j.Values[1]), f(j.True[0]), f(j.True[1]))
	}
	for _, q := range []struct {
		name, paper string
		q           float64
	}{{"smallest delay", "0.2 ms", 0}, {"median", "", 0.5}, {"99th percentile", "", 0.99}, {"largest delay", "0.8 ms", 1}} {
		row(q.name, q.paper, func(v []time.Duration) string { return figure(quantile(v, q.q)) })
	}
	count := func(keep func(time.Duration) bool) func([]time.Duration) string {
		return func(v []time.Duration) string {
			n := 0
			for _, d := range v {
				if keep(d) {
					n++
				}
			}
			return fmt.Sprintf("%d of %d", n, len(v))
		}
	}
	row("not positive", "none", count(func(d time.Duration) bool { return d <= 0 }))
	row("above 0.8 ms", "none", count(func(d time.Duration) bool { return d > lanLimit }))
	_ = t.Flush()
}

// lanLimit is the largest delay of the thesis's LAN check.
const lanLimit = 800 * time.Microsecond
