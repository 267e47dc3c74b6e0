// Package docs checks statements of the documents about the repository.
package docs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// named is the name of a test in a document.
var named = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9]+\b`)

// files are those of the repository whose names end with suffix, without build output.
func files(t *testing.T, suffix string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "build" || name == "node_modules" || strings.HasPrefix(name, ".") && path != root):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, suffix):
			all = append(all, path)
		}
		return nil
	})
	if err = errors.Join(err, nothing(all, suffix)); err != nil {
		t.Fatal(err)
	}
	return all
}

func nothing(all []string, suffix string) error {
	if len(all) == 0 {
		return errors.New("no file ends with " + suffix)
	}
	return nil
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// tests are the names of all tests.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	exist := map[string]bool{}
	for _, path := range files(t, "_test.go") {
		for _, m := range declared.FindAllStringSubmatch(read(t, path), -1) {
			exist[m[1]] = true
		}
	}
	return exist
}

// A test that was renamed skips unexpectedly where it cannot run, and its old name would excuse another.
func TestExpectedSkipsNameTests(t *testing.T) {
	exist := tests(t)
	for line := range strings.Lines(read(t, filepath.Join(root, "tests/expected-skips.txt"))) {
		name, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		top, _, _ := strings.Cut(name, "/")
		if name != "#" && (!exist[top] || reason == "") {
			t.Errorf("expected-skips.txt: %q has reason %q; it must name a test and the reason", name, reason)
		}
	}
}

func TestTestsNamedByDocumentsExist(t *testing.T) {
	exist := tests(t)
	for _, path := range files(t, ".md") {
		for _, name := range named.FindAllString(read(t, path), -1) {
			if !exist[name] {
				t.Errorf("%s names %s, which is not a test", strings.TrimPrefix(path, root+"/"), name)
			}
		}
	}
}

// Each row, list item and paragraph of SECURITY.md with a claim names a test of it. The section of unprotected things
// is exempt.
func TestEachClaimOfSecurityNamesItsTest(t *testing.T) {
	const admitted = "What is not protected"
	blocks := regexp.MustCompile(`(?m)^\s*$|\n(?:- |\| )`)
	claims := 0
	for _, section := range strings.Split(read(t, filepath.Join(root, "SECURITY.md")), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		if title == admitted {
			continue
		}
		for _, claim := range blocks.Split("\n"+text, -1) {
			claim = strings.TrimSpace(claim)
			switch {
			case claim == "", strings.HasPrefix(claim, "| |"), strings.HasSuffix(claim, ":"):
				continue
			}
			claims++
			if !named.MatchString(claim) {
				t.Errorf("%s: claim without a test: %q", title, claim)
			}
		}
	}
	if claims < 30 {
		t.Errorf("found %d claims, want more: the format of the document has changed", claims)
	}
}

// Each sleep in a test has a comment with its reason, in its line or the one above.
func TestSleepsOfTestsHaveReasons(t *testing.T) {
	for _, path := range files(t, "_test.go") {
		text, name := read(t, path), strings.TrimPrefix(path, root+"/")
		above := ""
		for line := range strings.Lines(text) {
			if strings.Contains(line, "time.Sleep(") && !strings.Contains(line, "// ") && !strings.HasPrefix(strings.TrimSpace(above), "//") {
				t.Errorf("%s: %s has no comment with its reason", name, strings.TrimSpace(line))
			}
			above = line
		}
	}
}
