package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
)

func all() (out []Rule) {
	for _, f := range Files() {
		for _, g := range f.Groups {
			out = append(out, g.Rules...)
		}
	}
	return out
}

// TestEachDeclaredRuleIsInAGroup reads the source of the package: a rule that no group names would be in no file.
func TestEachDeclaredRuleIsInAGroup(t *testing.T) {
	declared, grouped := map[string]bool{}, map[string]bool{}
	for _, file := range source(t) {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, isValue := s.(*ast.ValueSpec); isValue && d.Tok == token.VAR && v.Names[0].IsExported() {
						declared[v.Names[0].Name] = true
					}
				}
			case *ast.FuncDecl:
				if returnsRules(d) {
					ast.Inspect(d.Body, func(n ast.Node) bool {
						if id, isName := n.(*ast.Ident); isName {
							grouped[id.Name] = true
						}
						return true
					})
				}
			}
		}
	}
	if len(declared) < 100 {
		t.Fatalf("%d rules are declared, want at least 100", len(declared))
	}
	for name := range declared {
		if !grouped[name] {
			t.Errorf("%s is in no group", name)
		}
	}
}

func source(t *testing.T) (all []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file)
	}
	return all
}

// returnsRules reports whether a function makes a group, or the list of the thresholds.
func returnsRules(f *ast.FuncDecl) bool {
	if f.Type.Results == nil {
		return false
	}
	switch result := f.Type.Results.List[0].Type.(type) {
	case *ast.Ident:
		return result.Name == "Group"
	case *ast.ArrayType:
		id, isName := result.Elt.(*ast.Ident)
		return isName && (id.Name == "Threshold" || id.Name == "Rule")
	}
	return false
}

// TestNoRuleIsTwice: the name and labels of a rule are its own.
func TestNoRuleIsTwice(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range all() {
		key := r.Name
		for _, l := range r.Labels {
			key += " " + l.Name + "=" + l.Value
		}
		if seen[key] {
			t.Errorf("%s is in the files twice", key)
		}
		seen[key] = true
	}
}

// TestEachAlertInATextExists: comments and annotations name alerts by their full names.
func TestEachAlertInATextExists(t *testing.T) {
	known := map[string]bool{}
	for _, r := range all() {
		known[r.Name] = r.Alert != nil
	}
	check := func(where, text string) {
		for _, name := range regexp.MustCompile(`\bOneway[A-Z]\w+`).FindAllString(text, -1) {
			if !known[name] {
				t.Errorf("%s names %s, which is no alert", where, name)
			}
		}
	}
	for _, f := range Files() {
		check(f.Name, f.Doc)
		for _, g := range f.Groups {
			check(g.Name, g.Doc)
		}
	}
	for _, r := range all() {
		check(r.Name, r.Doc+r.Expr)
		for _, a := range r.Annotations() {
			check(r.Name, a.Value)
		}
	}
}

func TestWordWithoutASeriesPanics(t *testing.T) {
	for _, c := range []struct {
		text   string
		series names
	}{
		{"rate($sent[5m])", names{"lost": "oneway_packets_lost_total"}},
		{"rate($lost[5m])", names{"lost": "oneway_packets_lost_total", "sent": "oneway_packets_sent_total"}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s with %v was accepted", c.text, c.series)
				}
			}()
			_ = promql(c.text, c.series)
		}()
	}
	if got := promql(`label_replace($a, "b", "$1", "c", "(.*)")`, names{"a": "up"}); got != `label_replace(up, "b", "$1", "c", "(.*)")` {
		t.Errorf("a group of a regular expression became %s", got)
	}
}

func TestLookupSelectsTheLabelsOfTheAlert(t *testing.T) {
	for query, want := range map[string]string{
		"a" + sameProbe: `{{ range printf "a{instance=%q,path=%q,probe=%q}" $labels.instance $labels.path $labels.probe | query }}x{{ end }}`,
		"a{path,loaded=~'$direction|both'} or b{path}": `{{ range printf "a{path=%q,loaded=~'%s|both'} or b{path=%q}" $labels.path $labels.direction $labels.path | query }}x{{ end }}`,
		"a{quantile_rank='0.5'}":                       `{{ range printf "a{quantile_rank='0.5'}" | query }}x{{ end }}`,
	} {
		if got := lookup(query, "x"); got != want {
			t.Errorf("%s is\n%s, want\n%s", query, got, want)
		}
	}
	const several = `{{ range printf "a" | query | sortByLabel "reason" | sortByLabel "state" }}; {{ .Labels.state }} ({{ .Labels.reason }}) {{ .Value }}{{ end }}`
	if got := lookup("a", "; {{ .Labels.state }} ({{ .Labels.reason }}) {{ .Value }}"); got != several {
		t.Errorf("a lookup with several results is\n%s, want\n%s", got, several)
	}
}

// TestThresholdsAreOfOneFile: users replace oneway-thresholds.yml by their own copy, which has nothing else.
func TestThresholdsAreOfOneFile(t *testing.T) {
	for _, f := range Files() {
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				inFile := f.Name == "oneway-thresholds.yml"
				if threshold := strings.HasPrefix(r.Name, "oneway:threshold:") || r.Name == RunbooksURL.Name; threshold != inFile {
					t.Errorf("%s is in %s", r.Name, f.Name)
				}
			}
		}
	}
}

// TestLatenessHasABucket: without a bucket at the limit, the share of late packets by classic histograms would be absent.
func TestLatenessHasABucket(t *testing.T) {
	if !slices.Contains(metric.ProbeLateness.Buckets, LateSeconds) {
		t.Errorf("buckets %v, want one at %v", metric.ProbeLateness.Buckets, LateSeconds)
	}
}
