package flaky

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestProgramsKeepTheirFilesApart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "flaky")
	for _, c := range []struct{ program, test string }{{"test", "a/b.TestOld"}, {"vmlab", "a step, 1 s"}, {"test", "a/b.TestNew"}} {
		k, err := Open(dir, c.program)
		if err != nil {
			t.Fatal(err)
		}
		file, err := k.Add(c.test, "why")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "why" {
			t.Errorf("%q, %v", text, err)
		}
		if !slices.Equal(k.Files, []string{file}) {
			t.Errorf("files %v, want %s", k.Files, file)
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "test-a-b.TestNew.txt"), filepath.Join(dir, "vmlab-a-step-1-s.txt")}
	if !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
}
