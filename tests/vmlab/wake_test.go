package vmlab

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// inVMLab is set by `make vmlab`, which has installed what the lab needs.
const inVMLab = "ONEWAY_VMLAB"

// compiled is a program of uml/, in a directory of the test's.
func compiled(t *testing.T, name string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	args := append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-o", out, filepath.Join("uml", name)}, flags...)
	if text, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// Linux 6.1 as a guest sets 2,696 octets of the floating-point state; every host's kernel wants
// all that its processor has. The check sets less than any processor with AVX has.
func TestPartOfTheFloatingPointStateCanBeSet(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil || runtime.GOARCH != "amd64" {
		if os.Getenv(inVMLab) != "" {
			t.Fatal("want a compiler and amd64:", err)
		}
		t.Skip("NOT TESTED: no compiler (Debian package gcc), or not amd64; make vmlab runs it")
	}
	check := compiled(t, "ptrace-check.c")
	wake := compiled(t, "wake.c", "-shared", "-fPIC")
	run := func(preload string) (string, error) {
		c := exec.Command(check)
		c.Env = append(os.Environ(), "LD_PRELOAD="+preload)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run(""); err == nil || !strings.Contains(out, "a part of the state can be set: no") {
		t.Errorf("without wake.c: %v, %q; want it to fail for the part", err, out)
	}
	if out, err := run(wake); err != nil {
		t.Errorf("with wake.c: %v, %q", err, out)
	}
}
