package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A test that was renamed skips unexpectedly where it cannot run, and its old name would excuse another.
func TestExpectedSkipsNameTests(t *testing.T) {
	tests := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "build":
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range declaration.FindAllSubmatch(text, -1) {
			tests[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	expected, err := os.ReadFile("../expected-skips.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(expected)) {
		name, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		top, _, _ := strings.Cut(name, "/")
		if name != "#" && (!tests[top] || reason == "") {
			t.Errorf("expected-skips.txt: %q has reason %q; it must name a test and the reason", name, reason)
		}
	}
}
