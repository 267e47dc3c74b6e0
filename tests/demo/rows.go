package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"
)

// row is one line of the table: the configuration of the link, the truth by its log of the same packets, and the
// agents' measurement as Prometheus scraped it.
type row struct {
	// Name is the quantity, like the metric's name; it ends with the unit.
	Name      string `json:"name"`
	Direction string `json:"direction"`
	Unit      string `json:"unit"`
	// Configured is the profile's value, or follows from it. With a Truth it is shown only.
	Configured float64 `json:"configured"`
	// Truth is the value by the link's log; nil: not known.
	Truth *span `json:"link_log"`
	// Measured is nil if the agent does not report it; Reason is why.
	Measured *float64 `json:"measured"`
	// Bound is the error bound that oneway reports with its value; 0: none.
	Bound float64 `json:"bound"`
	// Tolerance is the allowed distance of the measured value from the truth's span in addition to the bound; Why is
	// its reason.
	Tolerance float64 `json:"tolerance"`
	Why       string  `json:"tolerance_reason"`
	// Chance is the probability that a link as configured has this log, or a rarer one; nil: the quantity is not
	// random.
	Chance *float64 `json:"chance_of_link_log,omitempty"`
	// Undefined is why the link has no such value: then a refusal with a reason is correct, and only a value can be
	// wrong.
	Undefined string `json:"undefined,omitempty"`
	Status    status `json:"status"`
	Reason    string `json:"reason,omitempty"`
	// Apart: the row is in a table of its own, and not in that of all rows.
	Apart bool `json:"-"`
}

// span is a closed interval.
type span struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

func exactly(v float64) *span { return &span{v, v} }

// off is the signed distance of v from the span.
func (s span) off(v float64) float64 {
	return v - min(max(v, s.Low), s.High)
}

type status string

const (
	statusOK         status = "ok"
	statusOutside    status = "OUTSIDE"
	statusUnreported status = "unreported"
)

// falseAlarm is the limit of Chance below which the link itself counts as faulty. A table has six such rows, so that a
// correct link fails one demo in 1.6 million.
const falseAlarm = 1e-7

// expected is the range for the measured value.
func (r *row) expected() span {
	if r.Truth != nil {
		return *r.Truth
	}
	return *exactly(r.Configured)
}

// judge sets the status.
func (r *row) judge() {
	switch {
	case r.Measured == nil && r.Undefined != "" && r.Reason != "":
		r.Status, r.Reason = statusOK, fmt.Sprintf("refused, and %s; the agent: %s", r.Undefined, r.Reason)
		return
	case r.Measured == nil:
		r.Status = statusUnreported
		if r.Reason == "" {
			r.Reason = "the agent gives no reason"
		}
		return
	case r.Chance != nil && *r.Chance < falseAlarm:
		r.Status = statusOutside
		r.Reason = fmt.Sprintf("the link does not match its configuration: its log has a probability of %.2g", *r.Chance)
		return
	case math.Abs(r.expected().off(*r.Measured)) <= r.Tolerance+r.Bound: // false for NaN
		r.Status = statusOK
	default:
		r.Status = statusOutside
		r.Reason = fmt.Sprintf("outside by more than its bound and %s (%s)", figure(r.Tolerance, r.Unit), r.Why)
	}
}

func judged(rows []row) []row {
	for i := range rows {
		rows[i].judge()
	}
	return rows
}

// with returns the rows of a status, by name.
func with(rows []row, s status) (names []string) {
	for _, r := range rows {
		if r.Status == s {
			names = append(names, r.Name+" "+r.Direction)
		}
	}
	return names
}

// outside are the rows whose value is outside, with it, its bound and what is expected.
func outside(rows []row) (all []string) {
	for _, r := range rows {
		if r.Status == statusOutside {
			all = append(all, fmt.Sprintf("%s %s is %s ± %s, want %s", r.Name, r.Direction, figure(*r.Measured, r.Unit), figure(r.Bound+r.Tolerance, r.Unit), r.expected().figure(r.Unit)))
		}
	}
	return all
}

// printTable writes the table as text.
func printTable(out io.Writer, profile string, rows []row) error {
	fmt.Fprintf(out, "\n%s: configured, true by the link's log, and measured\n\n", profile)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "quantity\tdirection\tconfigured\tlink's log\tmeasured\tbound\terror\t")
	for _, r := range rows {
		if r.Apart {
			continue
		}
		truth, measured, bound, off := "-", "-", "-", "-"
		if r.Truth != nil {
			truth = r.Truth.figure(r.Unit)
		}
		if r.Bound > 0 {
			bound = "± " + figure(r.Bound, r.Unit)
		}
		verdict := string(r.Status)
		if r.Measured != nil {
			measured, off = figure(*r.Measured, r.Unit), figure(r.expected().off(*r.Measured), r.Unit)
		}
		if r.Reason != "" {
			verdict += ": " + r.Reason
		}
		// The status is not a cell, so that a long reason does not widen the column.
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\n", r.Name, r.Direction, figure(r.Configured, r.Unit), truth, measured, bound, off, verdict)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// figure is a span as one number, if both ends have the same text.
func (s span) figure(unit string) string {
	low, high := number(s.Low, unit), number(s.High, unit)
	if low == high {
		return low + suffix(unit)
	}
	return low + ".." + high + suffix(unit)
}

func figure(v float64, unit string) string { return number(v, unit) + suffix(unit) }

// number is v in the unit of the suffix; zero has no sign.
func number(v float64, unit string) string {
	scale, digits := 1.0, 1
	switch unit {
	case "seconds":
		scale, digits = 1e3, 3
	case "ratio":
		scale, digits = 100, 3
	case "packets":
		digits = 0
	case "bytes", "bytes/s":
		scale = 1e-3
	}
	unsigned := math.Pow10(digits)
	return fmt.Sprintf("%.*f", digits, math.Round(scale*v*unsigned)/unsigned+0)
}

func suffix(unit string) string {
	switch unit {
	case "seconds":
		return " ms"
	case "ratio":
		return " %"
	case "bytes":
		return " kB"
	case "bytes/s":
		return " kB/s"
	}
	return ""
}

func writeReport(file string, rows []row) error {
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
