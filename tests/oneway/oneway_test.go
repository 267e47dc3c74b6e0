package oneway

import (
	"os/exec"
	"strings"
	"testing"
)

func TestProgramIsTheNamedOneOrBuilt(t *testing.T) {
	t.Setenv(Program, "/some/where/oneway")
	if binary, err := Build(t.TempDir()); err != nil || binary != "/some/where/oneway" {
		t.Errorf("%q, %v; want the named file", binary, err)
	}
	t.Setenv(Program, "")
	dir := t.TempDir()
	binary, err := Build(dir)
	if err != nil || !strings.HasPrefix(binary, dir) {
		t.Fatalf("%q, %v; want a file in %s", binary, err, dir)
	}
	if out, err := exec.Command(binary, "--version").CombinedOutput(); err != nil || !strings.Contains(string(out), "oneway") {
		t.Errorf("%v: %s", err, out)
	}
	t.Setenv("GOFLAGS", "-mod=unknown")
	if _, err := Build(dir); err == nil {
		t.Error("a build that fails returns no error")
	}
}
