package rules

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/serve/runbook"
	"oneway.example/tests/expr"
)

// silentForSlim is the sentence in the runbook of each alert that needs a series which slim paths do not have.
const silentForSlim = "It never fires for paths of profile `slim`"

// TestRunbookNamesTheAlertsThatNeverFireForSlimPaths derives the alerts from the metric table: an alert can fire if the
// series of its expression exist in profile slim, directly or in recording rules.
func TestRunbookNamesTheAlertsThatNeverFireForSlimPaths(t *testing.T) {
	rules, _ := load(t)
	readme, err := os.ReadFile(deploy + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := slim{table: table(), rules: rules, known: map[string]bool{}}
	fires := 0
	for _, a := range alerts(t) {
		silent := !s.possible(a.Expr)
		if !silent {
			fires++
		}
		if told := strings.Contains(runbook.Text(a.Alert), silentForSlim); told != silent {
			t.Errorf("%s: its runbook says %v, want %v: %q", a.Alert, told, silent, silentForSlim)
		}
		if listed := strings.Contains(string(readme), "`"+a.Alert+"` (full)"); listed != silent {
			t.Errorf("%s: README.md lists it as (full): %v, want %v", a.Alert, listed, silent)
		}
	}
	if fires < 10 {
		t.Errorf("%d alerts can fire for slim paths: the test cannot tell", fires)
	}
}

// slim decides which expressions can have a result where all paths have profile slim.
type slim struct {
	table map[string]*metric.Desc
	rules []expr.Rule
	known map[string]bool // of recorded names; false while being decided
}

var operatorRE = regexp.MustCompile(`^(?i)(or|and|unless)\b`)

// possible reads the operators and parentheses of PromQL, not all of its grammar: `or` needs one operand, `unless` the
// first, and all others need each operand.
func (s *slim) possible(query string) bool {
	any, all, needed, depth, from := false, true, true, 0, 0
	operand := func(to int) {
		all = all && (!needed || s.operand(query[from:to]))
	}
	quote := byte(0)
	for i := 0; i < len(query); i++ {
		switch c := query[i]; {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("({[", c) >= 0:
			depth++
		case strings.IndexByte(")}]", c) >= 0:
			depth--
		case depth == 0 && (i == 0 || strings.IndexByte(" \n)", query[i-1]) >= 0):
			word := strings.ToLower(operatorRE.FindString(query[i:]))
			if word == "" {
				continue
			}
			operand(i)
			if word == "or" {
				any, all = any || all, true
			}
			needed, from = word != "unless", i+len(word)
			i = from - 1
		}
	}
	operand(len(query))
	return any || all
}

// operand is an expression without and, or and unless outside of parentheses.
func (s *slim) operand(query string) bool {
	outside, from, depth := strings.Builder{}, 0, 0
	for i := 0; i < len(query); i++ {
		switch query[i] {
		case '(':
			if depth++; depth == 1 {
				from = i + 1
			}
		case ')':
			if depth--; depth == 0 {
				before := strings.TrimRight(outside.String(), " \n")
				if !strings.HasSuffix(before, "absent") && !s.possible(query[from:i]) {
					return false
				}
				outside.WriteString(" ")
			}
		default:
			if depth == 0 {
				outside.WriteByte(query[i])
			}
		}
	}
	for _, selector := range expr.Selectors(outside.String()) {
		if !s.exists(selector.Name) {
			return false
		}
	}
	return true
}

// exists reports whether there is a series of a name.
func (s *slim) exists(name string) bool {
	if d := s.table[expr.Family(name)]; d != nil {
		if !slices.Contains(d.Labels, metric.Path) {
			return true
		}
		return d.In(metric.Slim) != nil && d.Name == name // a native histogram has no classic series
	}
	known, decided := s.known[name]
	if decided {
		return known
	}
	s.known[name] = false // a rule that reads itself needs another one to begin
	for _, r := range s.rules {
		if r.Record == name && s.possible(r.Expr) {
			s.known[name] = true
		}
	}
	return s.known[name]
}
