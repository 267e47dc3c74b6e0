package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// A build without make's flags has the version of its module: that of its commit, or (devel) if the source is in no
// repository.
func TestPlainBuildHasAVersion(t *testing.T) {
	program := filepath.Join(t.TempDir(), "oneway")
	build := exec.Command("go", "build", "-buildvcs=auto", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make builds it: the race detector needs cgo, which would compile all packages again
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	out, err := exec.Command(program, "--version").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	want := `^oneway, version \(devel\) `
	if exec.Command("git", "rev-parse", "HEAD").Run() == nil {
		want = `(?s)^oneway, version v\d\S+ .* revision: [0-9a-f]{40}.*build date: +20\d\d-`
	}
	if !regexp.MustCompile(want).Match(out) {
		t.Errorf("want %s, got\n%s", want, out)
	}
}
