package docs

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/option"
)

// source has the expressions of the constants of a package.
type source map[string]ast.Expr

// sourceOf reads a directory below the root of the repository.
func sourceOf(t *testing.T, directory string) source {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, directory, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has %d Go files (%v)", directory, len(names), err)
	}
	all := source{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.ValueSpec); ok && len(s.Values) == len(s.Names) {
				for i, name := range s.Names {
					all[name.Name] = s.Values[i]
				}
			}
			return true
		})
	}
	return all
}

// units are what constants of durations consist of.
var units = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// eval is the value of an expression; nil: it is not constant, or of another package.
func (s source) eval(e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return s.eval(e.X)
	case *ast.Ident:
		return s.eval(s[e.Name])
	case *ast.SelectorExpr:
		if d, ok := units[e.Sel.Name]; ok {
			return constant.MakeInt64(int64(d))
		}
	case *ast.BinaryExpr:
		x, y := s.eval(e.X), s.eval(e.Y)
		switch {
		case x == nil || y == nil:
		case e.Op == token.SHL:
			bits, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(bits))
		default:
			return constant.BinaryOp(x, e.Op, y)
		}
	}
	return nil
}

// number is a constant of a package that need not be exported.
func number(t *testing.T, directory, name string) float64 {
	t.Helper()
	s := sourceOf(t, directory)
	v := s.eval(s[name])
	if v == nil {
		t.Fatalf("%s has no constant %s", directory, name)
	}
	f, _ := constant.Float64Val(constant.ToFloat(v))
	return f
}

// span is number of a constant that is a duration.
func span(t *testing.T, directory, name string) time.Duration {
	t.Helper()
	return time.Duration(number(t, directory, name))
}

// say returns the words of a value. A value without words fails the test: the search for an empty text always succeeds.
func say[K comparable](t *testing.T, words map[K]string, value K) string {
	t.Helper()
	text, ok := words[value]
	if !ok {
		t.Fatalf("the test has no words for %v: add them, and change the text", value)
	}
	return text
}

// defaults are the defaults of options, by key.
func defaults(of option.Described) map[string]string {
	all := map[string]string{}
	for _, d := range option.All(of) {
		all[d.Key] = option.String(d.Default())
	}
	return all
}
