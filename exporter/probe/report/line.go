package report

import (
	"encoding/json"
	"strings"

	"oneway.example/exporter/core/unit"
)

// Line is one result: numbers with their unit, a text, or the reason why it is unknown.
type Line struct {
	// Quantity is its name, such as "throughput".
	Quantity string `json:"quantity"`
	// Of is what the quantity is measured of, such as the codec of a rating; empty: nothing else has this quantity.
	Of string `json:"of,omitempty"`
	// Direction is forward or reverse; empty: both.
	Direction string `json:"direction,omitempty"`
	// Value is the result as text, which Numbers or Unknown replace if there are any.
	Value string `json:"value"`
	// Numbers are the result as numbers, in the order of the text.
	Numbers few[Number] `json:"numbers,omitempty"`
	// Unknown is the reason why there is no value; empty: there is one.
	Unknown string `json:"unknown,omitempty"`
}

// Number is a value, a change or a range, with the words around it.
type Number struct {
	// Label stands before it, such as "idle" or "at least". The label "of" continues the number before: "2 Mb/s of 3 Mb/s".
	Label string `json:"label,omitempty"`
	// Value is in the unit; nil: only the range or the text is known.
	Value *float64 `json:"value,omitempty"`
	// Bound is the error bound of the value; nil: no bound is known.
	Bound *float64 `json:"error_bound,omitempty"`
	// Before is the value before a change; nil: no change is meant.
	Before *float64 `json:"previous,omitempty"`
	// Range is the least and the largest value; nil: no range is known.
	Range *[2]float64 `json:"range,omitempty"`
	// Unit is that of METRICS.md; empty: a count.
	Unit unit.Unit `json:"unit,omitempty"`
	// Text stands behind it, or alone.
	Text string `json:"text,omitempty"`
}

// style is how a number and its symbol, and a change, are joined.
type style struct{ space, arrow string }

var (
	terminal = style{" ", " -> "}
	page     = style{"\u00a0", "\u00a0→\u00a0"} // no line break within a number
)

// Text is the result for a terminal or a document: "30.1 ms ± 0.2 ms".
func (l Line) Text() string { return l.text(terminal, true) }

// Page is the result for a page: no line break separates a number from its unit.
func (l Line) Page() string { return l.text(page, true) }

// Cell is Text with the error bound of the first number apart, as "± 0.2 ms"; empty: no bound is known.
func (l Line) Cell() (value, bound string) {
	if len(l.Numbers) > 0 && l.Numbers[0].Bound != nil && l.Numbers[0].Value != nil {
		n := l.Numbers[0]
		_, bound = l.scales()[n.Unit].FormatBound(" ", *n.Value, *n.Bound)
	}
	return l.text(terminal, false), bound
}

func (l Line) text(s style, bounds bool) string {
	switch {
	case l.Unknown != "":
		return "unknown: " + l.Unknown
	case len(l.Numbers) == 0:
		return l.Value
	}
	scales, all := l.scales(), strings.Builder{}
	for i, n := range l.Numbers {
		switch {
		case i == 0:
		case n.Label == "of":
			all.WriteString(" ")
		default:
			all.WriteString(", ")
		}
		all.WriteString(n.text(scales[n.Unit], s, bounds || i > 0))
	}
	return all.String()
}

// scales are those of the units, each by the largest of its values, so that all have the same prefix.
func (l Line) scales() map[unit.Unit]unit.Scale {
	values := map[unit.Unit][]float64{}
	for _, n := range l.Numbers {
		for _, v := range []*float64{n.Value, n.Bound, n.Before} {
			if v != nil {
				values[n.Unit] = append(values[n.Unit], *v)
			}
		}
		if n.Range != nil {
			values[n.Unit] = append(values[n.Unit], n.Range[:]...)
		}
	}
	scales := map[unit.Unit]unit.Scale{}
	for u, all := range values {
		scales[u] = u.ScaleOf(all...)
	}
	return scales
}

func (n Number) text(scale unit.Scale, s style, bound bool) string {
	var words []string
	if n.Label != "" {
		words = append(words, n.Label)
	}
	if n.Value != nil {
		value, limit := scale.FormatWith(s.space, *n.Value), ""
		if n.Bound != nil {
			value, limit = scale.FormatBound(s.space, *n.Value, *n.Bound)
		}
		if n.Before != nil {
			value = scale.FormatWith(s.space, *n.Before) + s.arrow + value
		}
		if limit != "" && bound {
			value += " " + limit
		}
		words = append(words, value)
	}
	if n.Range != nil {
		between := scale.FormatWith(s.space, n.Range[0]) + " to " + scale.FormatWith(s.space, n.Range[1])
		if n.Value != nil {
			between = "(" + between + ")"
		}
		words = append(words, between)
	}
	if n.Text != "" {
		words = append(words, n.Text)
	}
	return strings.Join(words, " ")
}

// MarshalJSON encodes the numbers, and the result as text in the field value.
func (l Line) MarshalJSON() ([]byte, error) {
	type plain Line
	l.Value = l.Text()
	return json.Marshal(plain(l))
}

// lines returns at most limit lines, cut to the limits of texts.
func lines(all []Line, limit int) (kept []Line) {
	for _, l := range all[:min(len(all), limit)] {
		kept = append(kept, l.bounded())
	}
	return kept
}

// bounded returns a copy cut to the limits. Numbers that are not finite are left out.
func (l Line) bounded() Line {
	all := l.Numbers[:min(len(l.Numbers), maxItems)]
	l.Numbers = nil
	for _, n := range all {
		n.Label, n.Unit, n.Text = truncate(n.Label), unit.Unit(truncate(string(n.Unit))), truncate(n.Text)
		for _, v := range []**float64{&n.Value, &n.Bound, &n.Before} {
			if *v != nil && !finite(**v) {
				*v = nil
			}
		}
		if n.Range != nil && (!finite(n.Range[0]) || !finite(n.Range[1])) {
			n.Range = nil
		}
		l.Numbers = append(l.Numbers, n)
	}
	l.Quantity, l.Of, l.Direction, l.Value, l.Unknown = truncate(l.Quantity), truncate(l.Of), truncate(l.Direction), truncate(l.Value), truncate(l.Unknown)
	return l
}
