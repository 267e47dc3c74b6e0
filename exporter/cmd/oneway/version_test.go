package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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
	if command, err := exec.Command(program, "version").Output(); err != nil || !bytes.Equal(command, out) {
		t.Errorf("oneway version: %v, %q; want what --version prints, %q", err, command, out)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{{}, {"help"}, {"--help"}, {"probe", "--help"}, {"--version"}} {
		var said bytes.Buffer
		c := exec.Command(program, args...)
		c.Stdout, c.Stderr = full, &said
		if err := c.Run(); c.ProcessState.ExitCode() != exitFailure || !strings.HasPrefix(said.String(), "oneway: print the help: ") || strings.Contains(said.String(), "panic") {
			t.Errorf("oneway %v without space for its output: %v: %s", args, err, &said)
		}
	}
}

// TestOverviewFitsAScreen: without arguments the program shows its commands and where to go on.
func TestOverviewFitsAScreen(t *testing.T) {
	var page strings.Builder
	if err := overview(&page, application().Model()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(page.String()), "\n")
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for _, want := range []string{"  probe  ", "  agent  ", "  test saturation  ", "  token new  ", "oneway COMMAND --help", "man oneway"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, &page)
		}
	}
	if len(lines) > 28 {
		t.Errorf("%d lines, want at most 28\n%s", len(lines), &page)
	}
}
