package words

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

//go:generate go test -run TestNoFileGainsAPhrase . -args -update

// update lowers the counts of accent.txt to those of the files. It raises none.
var update = flag.Bool("update", false, "lower the counts in accent.txt")

// phrases are those that the documentation of other projects does not have.
var phrases = regexp.MustCompile(`(?i)\b(that|those) of\b|; nil: none|\bhas none\b|\b(of|with) which\b`)

// functionWords are not names of functions and types: a name is a verb or a noun of the field. At, All, As, Has, Is and Now are
// names of methods in Go's own packages.
var functionWords = words(`above across after again ahead always among and another anything apart around away because before behind below
	beside besides between beyond both but by down during each either else enough every exactly few for from further given gone heard held
	here in inside into it lay least less made many maybe meant more most mostly much must near neither no nor not nothing nowhere of off on
	once one only or other others ours out over own quite rather said same saw seen since so some still such surely taken than that the
	their then there these they this those through to together told too took twice under until up upon very when where which while who whole
	whose why with within without yes yet`)

func words(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

// accent is what is counted in a file: phrases in comments and in documents, and names that are function words.
type accent struct{ phrases, names []string }

func (a *accent) counts() [2]int { return [2]int{len(a.phrases), len(a.names)} }

// accentOf counts in a Go file, or in the text of any other.
func accentOf(name string, text []byte) (a accent, err error) {
	if filepath.Ext(name) != ".go" {
		a.phrases = found(string(text))
		return a, nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	if err != nil {
		return a, err
	}
	for _, group := range f.Comments {
		a.phrases = append(a.phrases, found(group.Text())...)
	}
	check := func(id *ast.Ident) {
		if functionWords[strings.ToLower(id.Name)] {
			a.names = append(a.names, id.Name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Name)
		case *ast.TypeSpec:
			check(n.Name)
		}
		return true
	})
	return a, nil
}

// found are the phrases in a text, also across the ends of its lines.
func found(text string) []string {
	return phrases.FindAllString(strings.Join(strings.Fields(text), " "), -1)
}

// accents are those of all files that have one, by their names in the repository.
func accents(t *testing.T) map[string]accent {
	t.Helper()
	all, read := map[string]accent{}, 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "build" || d.Name() == "testdata" || rel == "tests/words"):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains([]string{".go", ".md", ".yml", ".yaml", ".sh"}, filepath.Ext(name)) && d.Name() != "Makefile":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		read++
		a, err := accentOf(name, text)
		if a.counts() != [2]int{} {
			all[rel] = a
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 100 {
		t.Fatalf("%d files were read, want the repository's", read)
	}
	return all
}

// baseline is a file with the counts of phrases and names that each file had, and may have at most.
const baseline = "accent.txt"

func TestNoFileGainsAPhrase(t *testing.T) {
	text, err := os.ReadFile(baseline)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string][2]int{}
	head := ""
	for line := range strings.Lines(string(text)) {
		var counts [2]int
		var name string
		if strings.HasPrefix(line, "#") {
			head += line
			continue
		}
		if _, err := fmt.Sscan(line, &counts[0], &counts[1], &name); err != nil {
			t.Fatalf("%s: %q: %v; want PHRASES NAMES FILE", baseline, line, err)
		}
		allowed[name] = counts
	}
	all := accents(t)
	var sum [2]int
	lowered := head
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, most := all[name], allowed[name]
		got := a.counts()
		if got[0] > most[0] {
			t.Errorf("%s has %d of the phrases %q, and had %d: write another sentence", name, got[0], a.phrases, most[0])
		}
		if got[1] > most[1] {
			t.Errorf("%s has %d functions and types with the names %q, and had %d: take a verb, or a noun of the field", name, got[1], a.names, most[1])
		}
		least := [2]int{min(got[0], most[0]), min(got[1], most[1])}
		sum[0], sum[1] = sum[0]+got[0], sum[1]+got[1]
		if least != [2]int{} {
			lowered += fmt.Sprintln(least[0], least[1], name)
		}
	}
	t.Logf("%d phrases and %d names in %d files", sum[0], sum[1], len(all))
	if *update {
		if err := os.WriteFile(baseline, []byte(lowered), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if t.Failed() {
		t.Logf("a file that was moved takes its line in tests/words/%s with it; go generate ./tests/words lowers the counts that fell", baseline)
	}
}

func TestPhrasesAndNamesAreCounted(t *testing.T) {
	a, err := accentOf("a.go", []byte(`// Package a has none, and that
// of b. Those of c are two, one of which is free; nil: none.
package a

const text = "that of a string is not counted"

type of struct{}

func (of) Within() {}

func (of) Now() {}

func withinReach() {}
`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"has none", "that of", "Those of", "of which", "; nil: none"}; !slices.Equal(a.phrases, want) {
		t.Errorf("phrases %q, want %q", a.phrases, want)
	}
	if want := []string{"of", "Within"}; !slices.Equal(a.names, want) {
		t.Errorf("names %q, want %q", a.names, want)
	}
	if a, err = accentOf("a.md", []byte("A link with\nwhich all is well, and thatof none.")); err != nil || a.counts() != [2]int{1, 0} {
		t.Errorf("%q, %v; want one phrase", a, err)
	}
}
