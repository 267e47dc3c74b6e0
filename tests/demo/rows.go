package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"
)

// row is one line of the table: what the link was configured to do, what its log says that it
// did to the same packets, and what the agents measured, as Prometheus scraped it.
type row struct {
	// Name is the quantity, as the metric names it; unit is at its end.
	Name      string `json:"name"`
	Direction string `json:"direction"`
	Unit      string `json:"unit"`
	// Configured is the profile's value, or what follows from it. It is shown; nothing is
	// held against it where there is a Truth.
	Configured float64 `json:"configured"`
	// Truth is what the link's log says; nil: it cannot tell.
	Truth *span `json:"link_log"`
	// Measured is nil if the agent does not tell; Reason then says why.
	Measured *float64 `json:"measured"`
	// Bound is the error bound that oneway states for its value; 0 where it has none.
	Bound float64 `json:"bound"`
	// Tolerance is how far the measured value may be outside of the truth's span beyond the
	// bound; Why it is that much.
	Tolerance float64 `json:"tolerance"`
	Why       string  `json:"tolerance_reason"`
	// Chance is the probability with which a link as configured does what the log says, or
	// something rarer; nil: nothing about the quantity is random.
	Chance *float64 `json:"chance_of_link_log,omitempty"`
	// Undefined says why the link has no such value: then a refusal with its reason is right, and
	// only a value can be wrong.
	Undefined string `json:"undefined,omitempty"`
	Status    status `json:"status"`
	Reason    string `json:"reason,omitempty"`
}

// span is an interval; both ends are in it.
type span struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

func exactly(v float64) *span { return &span{v, v} }

// off is how far v is outside, signed.
func (s span) off(v float64) float64 {
	return v - min(max(v, s.Low), s.High)
}

type status string

const (
	statusOK         status = "ok"
	statusOutside    status = "OUTSIDE"
	statusUnreported status = "untold"
)

// falseAlarm is the probability of a chance below which the link itself is called wrong. A
// table has six such rows, so that a right link fails a demo once in 1.6 million times.
const falseAlarm = 1e-7

// expected is what the measured value is held against.
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
		r.Reason = fmt.Sprintf("the link does not do what is configured: what its log says has a probability of %.2g", *r.Chance)
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

// printTable writes the table for people.
func printTable(out io.Writer, profile string, rows []row) error {
	fmt.Fprintf(out, "\n%s: configured, true by the link's log, and measured\n\n", profile)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "quantity\tdirection\tconfigured\tlink's log\tmeasured\tbound\terror\t")
	for _, r := range rows {
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
		// The verdict is no cell, so that a long reason does not move the others.
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\n", r.Name, r.Direction, figure(r.Configured, r.Unit), truth, measured, bound, off, verdict)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// figure is a span as one figure, if both ends are written alike.
func (s span) figure(unit string) string {
	low, high := number(s.Low, unit), number(s.High, unit)
	if low == high {
		return low + suffix(unit)
	}
	return low + ".." + high + suffix(unit)
}

func figure(v float64, unit string) string { return number(v, unit) + suffix(unit) }

// number is v in the unit that suffix names; no zero has a sign.
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
