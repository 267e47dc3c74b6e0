// Package words enforces the vocabulary of the repository: no retired word is in a
// name, a string, a comment or a document.
package words

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

// retired is a line of retired.txt.
type retired struct {
	words       []string       // of a phrase, lower case
	pattern     *regexp.Regexp // of text; of a phrase too
	identifiers bool
	replacement string
	allowed     []string
}

func (r *retired) allows(file string) bool {
	for _, a := range r.allowed {
		if file == a || strings.HasPrefix(file, a+"/") {
			return true
		}
	}
	return false
}

// parse reads the list.
func parse(text string) (list []*retired, err error) {
	s := bufio.NewScanner(strings.NewReader(text))
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, found := strings.Cut(line, " -> ")
		if !found {
			return nil, fmt.Errorf("retired.txt:%d: %q has no replacement: want WORD -> REPLACEMENT", n, line)
		}
		r := &retired{}
		if before, places, found := strings.Cut(rest, " [allowed in: "); found {
			rest = before
			for p := range strings.SplitSeq(strings.TrimSuffix(places, "]"), ",") {
				r.allowed = append(r.allowed, strings.TrimSpace(p))
			}
		}
		r.replacement = rest
		pattern := ""
		if inner, ok := strings.CutPrefix(word, "/"); ok {
			pattern = strings.TrimSuffix(inner, "/")
		} else {
			r.words, r.identifiers = strings.Fields(strings.ToLower(word)), true
			pattern = `\b` + strings.ReplaceAll(regexp.QuoteMeta(word), " ", `[ -]`) + `\b`
		}
		if r.pattern, err = regexp.Compile("(?i)" + pattern); err != nil {
			return nil, fmt.Errorf("retired.txt:%d: %w", n, err)
		}
		list = append(list, r)
	}
	return list, s.Err()
}

// split gives the words of an identifier in lower case.
func split(name string) (words []string) {
	runes, begin := []rune(name), 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) {
			a, b := runes[i-1], runes[i]
			acronym := unicode.IsUpper(a) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if unicode.IsLetter(a) && unicode.IsLetter(b) && (unicode.IsLower(b) || unicode.IsUpper(a) && !acronym) {
				continue
			}
		}
		words = append(words, strings.ToLower(string(runes[begin:i])))
		begin = i
	}
	return words
}

// has reports whether the phrase stands in the words.
func has(words, phrase []string) bool {
	for i := range words {
		if i+len(phrase) <= len(words) && strings.Join(words[i:i+len(phrase)], " ") == strings.Join(phrase, " ") {
			return true
		}
	}
	return false
}

// inName reports whether the word is in the lower-case name of a file or an import, which may join words (heavyrows).
// Short words are in many names by chance; of these, only whole ones count.
func inName(name, word string) bool {
	const shortest = 5
	return len(word) >= shortest && strings.Contains(strings.ToLower(name), word) || has(split(name), []string{word})
}

// documents are files of which each line is read.
var documents = map[string]bool{
	".md": true, ".yml": true, ".yaml": true, ".sh": true, ".html": true, ".css": true, ".json": true, ".txt": true,
	".conf": true, ".c": true, ".rules": true,
}

func TestNoRetiredWordIsUsed(t *testing.T) {
	text, err := os.ReadFile("retired.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "build" || rel == "tests/words" || strings.HasSuffix(rel, "testdata/fuzz")):
			return filepath.SkipDir
		}
		checkName(t, rel, 1, d.Name(), list)
		switch {
		case d.IsDir():
			return nil
		case filepath.Ext(name) == ".go":
			files++
			return goFile(t, name, rel, list)
		case documents[filepath.Ext(name)] || d.Name() == "Makefile":
			files++
			b, err := os.ReadFile(name)
			for n, line := range strings.Split(string(b), "\n") {
				checkText(t, rel, n+1, line, list)
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("%d files were read, want the repository's", files)
	}
}

func checkText(t *testing.T, rel string, line int, text string, list []*retired) {
	t.Helper()
	for _, r := range list {
		if found := r.pattern.FindString(text); found != "" && !r.allows(rel) {
			t.Errorf("%s:%d: %q is retired: write %s", rel, line, found, r.replacement)
		}
	}
}

func checkWords(t *testing.T, rel string, line int, name string, list []*retired) {
	t.Helper()
	words := split(name)
	for _, r := range list {
		if r.identifiers && has(words, r.words) && !r.allows(rel) {
			t.Errorf("%s:%d: %s has %q, which is retired: write %s", rel, line, name, strings.Join(r.words, " "), r.replacement)
		}
	}
}

func checkName(t *testing.T, rel string, line int, name string, list []*retired) {
	t.Helper()
	for _, r := range list {
		if len(r.words) == 1 && inName(name, r.words[0]) && !r.allows(rel) {
			t.Errorf("%s:%d: the name %s has %q, which is retired: write %s", rel, line, name, r.words[0], r.replacement)
		}
	}
}

func goFile(t *testing.T, name, rel string, list []*retired) error {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			for i, line := range strings.Split(c.Text, "\n") {
				checkText(t, rel, fset.Position(c.Pos()).Line+i, line, list)
			}
		}
	}
	declared := map[string]bool{}
	check := func(id *ast.Ident) {
		if id == nil || declared[id.Name] {
			return
		}
		declared[id.Name] = true
		checkWords(t, rel, fset.Position(id.Pos()).Line, id.Name, list)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Name)
		case *ast.TypeSpec:
			check(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				check(id)
			}
		case *ast.Field:
			for _, id := range n.Names {
				check(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						check(id)
					}
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if id, ok := e.(*ast.Ident); ok {
						check(id)
					}
				}
			}
		case *ast.ImportSpec:
			if n.Name != nil {
				checkName(t, rel, fset.Position(n.Pos()).Line, n.Name.Name, list)
			}
			return false // the path is of files here, or of other modules
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				break
			}
			if !strings.Contains(n.Value, " ") { // a key or a value: its words may be joined
				checkWords(t, rel, fset.Position(n.Pos()).Line, n.Value, list)
				break
			}
			for i, line := range strings.Split(n.Value, "\n") {
				checkText(t, rel, fset.Position(n.Pos()).Line+i, line, list)
			}
		}
		return true
	})
	check(f.Name)
	return nil
}

func TestRetiredWordsAreFound(t *testing.T) {
	list, err := parse("far end -> remote end\n/\\bheavy (probe|run)s?\\b/ -> load-test probe [allowed in: a/b]\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"farEnd": true, "theFarEnd": true, "FAR_END": false, "farther": false, "afar": false, "endFar": false} {
		if got := has(split(name), list[0].words); got != want {
			t.Errorf("%s: has \"far end\" %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]bool{"heavyrows.go": true, "heavy": true, "theheavylink": true, "heav.go": false} {
		if got := inName(name, "heavy"); got != want {
			t.Errorf("%s: has \"heavy\" %v, want %v", name, got, want)
		}
	}
	if inName("talent.go", "lent") || !inName("lent_test.go", "lent") {
		t.Error("names: want \"lent\" found in lent_test.go, not in talent.go")
	}
	if !has(split(`"no_answer"`), []string{"answer"}) || !has(split("`json:\"answer,omitempty\"`"), []string{"answer"}) {
		t.Error("literals: want \"answer\" found in a key of several words and in a tag")
	}
	if !list[0].pattern.MatchString("at its Far end.") || !list[1].pattern.MatchString("Heavy probes") || list[1].pattern.MatchString("a heavy tail") {
		t.Error("text: want \"Far end\" and \"Heavy probes\" found, \"a heavy tail\" not")
	}
	if !list[1].allows("a/b/c.go") || list[1].allows("a/bc.go") {
		t.Error("want the phrase allowed below a/b only")
	}
	if _, err := parse("word"); err == nil {
		t.Error("a line without replacement: want an error")
	}
}
