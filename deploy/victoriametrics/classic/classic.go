// Package classic rewrites expressions of PromQL for a store that has no native histograms, as VictoriaMetrics: a selector of such a
// histogram has no series there, and functions as histogram_count are unknown. What follows from a selector without series is
// removed: `native or classic` becomes `classic`. The rest of the text is kept as it is.
package classic

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// Rewriter rewrites expressions. The zero value knows no native histogram.
type Rewriter struct {
	native map[string]bool
}

// New makes a Rewriter. native are the names of the native histograms, as they are exported.
func New(native []string) *Rewriter {
	r := &Rewriter{map[string]bool{}}
	for _, name := range native {
		r.native[name] = true
	}
	return r
}

// Remove says that a recorded series has no samples in the store: all of its rules read native histograms only. It reports whether
// that is new.
func (r *Rewriter) Remove(name string) bool {
	known := r.native[name]
	r.native[name] = true
	return !known
}

// Expr is the expression without what reads native histograms. It is empty if nothing remains. Variables of Grafana are kept.
// An expression that asks whether a native histogram is absent is an error: it has another meaning in the store.
func (r *Rewriter) Expr(expr string) (string, error) {
	text, variables := hide(expr)
	parse := parser.NewParser(parser.Options{})
	e, err := parse.ParseExpr(text)
	if err != nil {
		return "", fmt.Errorf("classic: %w in %s", err, text)
	}
	if err := r.absent(e); err != nil {
		return "", fmt.Errorf("%w in %s", err, expr)
	}
	if r.empty(e) {
		return "", nil
	}
	w := writer{Rewriter: r, text: text}
	rewritten := w.rewrite(e)
	if _, err := parse.ParseExpr(rewritten); err != nil {
		return "", fmt.Errorf("classic: result %s: %w", rewritten, err)
	}
	return variables.show(rewritten), nil
}

// absent is the error of an expression that asks for absence.
func (r *Rewriter) absent(e parser.Expr) (err error) {
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if c, ok := n.(*parser.Call); ok && strings.HasPrefix(c.Func.Name, "absent") && r.empty(c.Args[0]) {
			err = fmt.Errorf("classic: %s of a native histogram has no equivalent", c.Func.Name)
		}
		return nil
	})
	return err
}

// empty reports whether an expression has no series in the store.
func (r *Rewriter) empty(e parser.Expr) bool {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return r.known(e.Name)
	case *parser.MatrixSelector:
		return r.empty(e.VectorSelector)
	case *parser.SubqueryExpr:
		return r.empty(e.Expr)
	case *parser.ParenExpr:
		return r.empty(e.Expr)
	case *parser.UnaryExpr:
		return r.empty(e.Expr)
	case *parser.StepInvariantExpr:
		return r.empty(e.Expr)
	case *parser.AggregateExpr:
		return r.empty(e.Expr)
	case *parser.Call:
		return slices.ContainsFunc(e.Args, r.empty)
	case *parser.BinaryExpr:
		switch e.Op {
		case parser.LOR:
			return r.empty(e.LHS) && r.empty(e.RHS)
		case parser.LUNLESS:
			return r.empty(e.LHS)
		}
		return r.empty(e.LHS) || r.empty(e.RHS)
	}
	return false
}

// known reports whether a name is of a native histogram. One that ends with a variable is, if a name is with some value of it.
func (r *Rewriter) known(name string) bool {
	i := strings.LastIndex(name, stands)
	if i < 0 || i != len(name)-len(strconv.Itoa(firstStand)) {
		return r.native[name]
	}
	for native := range r.native {
		if strings.HasPrefix(native, name[:i]) {
			return true
		}
	}
	return false
}

// writer copies the text of an expression without its empty operands.
type writer struct {
	*Rewriter
	text string
}

func (w *writer) rewrite(n parser.Node) string {
	if b, ok := n.(*parser.BinaryExpr); ok {
		switch {
		case b.Op == parser.LOR && w.empty(b.LHS):
			return w.rewrite(b.RHS)
		case (b.Op == parser.LOR || b.Op == parser.LUNLESS) && w.empty(b.RHS):
			return w.rewrite(b.LHS)
		}
	}
	at := n.PositionRange()
	from, out := int(at.Start), ""
	for _, child := range children(n) {
		within := child.PositionRange()
		out += w.text[from:within.Start] + w.rewrite(child)
		from = int(within.End)
	}
	return out + w.text[from:at.End]
}

// children are the operands of a node, in the order of the text.
func children(n parser.Node) (all []parser.Node) {
	switch n.(type) {
	case *parser.VectorSelector, *parser.MatrixSelector, *parser.NumberLiteral, *parser.StringLiteral:
		return nil
	}
	for child := range parser.ChildrenIter(n) {
		if list, ok := child.(parser.Expressions); ok {
			for _, one := range list {
				all = append(all, one)
			}
		} else {
			all = append(all, child)
		}
	}
	slices.SortFunc(all, func(a, b parser.Node) int { return int(a.PositionRange().Start) - int(b.PositionRange().Start) })
	return all
}

// variables are the variables of Grafana that an expression has outside of strings, by what stands for them.
type variables map[string]string

// token is a string, a variable that is the name of a label in a selector, or another variable.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[{,]\$[A-Za-z_]+[=!]|\$\{?[A-Za-z_]+\}?`)

// What stands for variables are numbers from firstStand on, which begin with stands.
const (
	firstStand = 7770001
	stands     = "777"
)

// hide replaces the variables by durations, which are numbers, too, for a parser; names of labels by names.
func hide(expr string) (string, variables) {
	v := variables{}
	return token.ReplaceAllStringFunc(expr, func(s string) string {
		if s[0] == '"' {
			return s
		}
		stand := strconv.Itoa(firstStand + len(v))
		if s[0] != '$' {
			stand, end := "label"+stand, len(s)-1
			v[stand] = s[1:end]
			return s[:1] + stand + s[end:]
		}
		v[stand] = s
		return stand
	}), v
}

// show puts the variables back.
func (v variables) show(text string) string {
	for stand, name := range v {
		text = strings.ReplaceAll(text, stand, name)
	}
	return text
}
