// Package badfiles checks invalid configuration files whose last lines have the expected errors.
package badfiles

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the errors into the files; review the difference")

// Run compares the error of check for each file of testdata/bad, of which there are at least this many, with the file's
// lines "# ERROR message", where messages begin with the file's name.
func Run(t *testing.T, least int, check func(t *testing.T, name string) error) {
	t.Helper()
	files, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil || len(files) < least {
		t.Fatalf("found %d bad files, want at least %d; err %v", len(files), least, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(content)) {
				if message, ok := strings.CutPrefix(strings.TrimSpace(line), "# ERROR "); ok {
					want = append(want, name+message)
				}
			}
			if len(want) == 0 {
				t.Fatal("the file has no line with the expected error")
			}
			if err = check(t, name); err == nil {
				t.Fatal("the file is accepted, want an error")
			}
			if *update {
				rewrite(t, name, string(content), err.Error())
				return
			}
			if diff := cmp.Diff(strings.Join(want, "\n"), err.Error()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// rewrite replaces the expected errors of a file.
func rewrite(t *testing.T, name, content, errors string) {
	t.Helper()
	kept, _, _ := strings.Cut(content, "# ERROR ")
	for line := range strings.Lines(errors) {
		kept += "# ERROR " + strings.TrimPrefix(strings.TrimSuffix(line, "\n"), name) + "\n"
	}
	if err := os.WriteFile(name, []byte(kept), 0o644); err != nil {
		t.Fatal(err)
	}
}
