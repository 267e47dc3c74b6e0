// Package ruletext writes the rule files of package rules.
package ruletext

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/core/rules"
)

// YAML is a rule file as Prometheus reads it.
func YAML(f rules.File) string {
	var b strings.Builder
	b.WriteString("# Generated from exporter/core/rules by `make generate`: a change of this file is lost with the next version.\n#\n")
	comment(&b, "", f.Doc)
	b.WriteString("groups:\n")
	for i, g := range f.Groups {
		if i > 0 {
			b.WriteString("\n")
		}
		comment(&b, "  ", g.Doc)
		fmt.Fprintf(&b, "  - name: %s\n    interval: %s\n", g.Name, model.Duration(g.Interval))
		if g.Offset > 0 {
			fmt.Fprintf(&b, "    eval_offset: %s\n", model.Duration(g.Offset))
		}
		b.WriteString("    rules:\n")
		for i, r := range g.Rules {
			if i > 0 && r.Alert != nil {
				b.WriteString("\n")
			}
			write(&b, r)
		}
	}
	return b.String()
}

// comment writes the lines of a text.
func comment(b *strings.Builder, indent, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(indent+"# "+line, " \n") + "\n")
	}
}

func write(b *strings.Builder, r rules.Rule) {
	const indent = "        "
	comment(b, "      ", r.Doc)
	kind := "record"
	if r.Alert != nil {
		kind = "alert"
	}
	fmt.Fprintf(b, "      - %s: %s\n%sexpr: ", kind, r.Name, indent)
	if strings.Contains(r.Expr, "\n") {
		fmt.Fprintf(b, "|\n%s  %s\n", indent, strings.ReplaceAll(r.Expr, "\n", "\n"+indent+"  "))
	} else {
		fmt.Fprintln(b, r.Expr)
	}
	if a := r.Alert; a != nil && a.For > 0 {
		fmt.Fprintf(b, "%sfor: %s\n", indent, model.Duration(a.For))
	}
	if a := r.Alert; a != nil && a.KeepFiringFor > 0 {
		fmt.Fprintf(b, "%skeep_firing_for: %s\n", indent, model.Duration(a.KeepFiringFor))
	}
	if labels := r.AllLabels(); len(labels) > 0 {
		words := make([]string, len(labels))
		for i, l := range labels {
			words[i] = l.Name + ": " + scalar(l.Value)
		}
		fmt.Fprintf(b, "%slabels: {%s}\n", indent, strings.Join(words, ", "))
	}
	if annotations := r.Annotations(); len(annotations) > 0 {
		fmt.Fprintf(b, "%sannotations:\n", indent)
		for _, a := range annotations {
			fmt.Fprintf(b, "%s  %s: %s\n", indent, a.Name, quoted(a.Value))
		}
	}
}

// scalar is a label's value: a number in quotes, since it is a text.
func scalar(value string) string {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return strconv.Quote(value)
	}
	return value
}

// quoted is a text in the kind of quotes that needs no escape, if there is one.
func quoted(value string) string {
	if strings.Contains(value, `"`) && !strings.Contains(value, "'") {
		return "'" + value + "'"
	}
	return strconv.Quote(value)
}
