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

// checkWake runs a check of uml/ without wake.c, which must say that this is not so, and with it.
func checkWake(t *testing.T, check, without string) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil || runtime.GOARCH != "amd64" {
		if os.Getenv(inVMLab) != "" {
			t.Fatal("want a compiler and amd64:", err)
		}
		t.Skip("NOT TESTED: no compiler (Debian package gcc), or not amd64; make vmlab runs it")
	}
	program, wake := compiled(t, check), compiled(t, "wake.c", "-shared", "-fPIC")
	run := func(preload string) (string, error) {
		c := exec.Command(program)
		c.Env = append(os.Environ(), "LD_PRELOAD="+preload)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run(""); err == nil || !strings.Contains(out, without+": no") {
		t.Errorf("without wake.c: %v, %q; want %q to fail", err, out, without)
	}
	if out, err := run(wake); err != nil {
		t.Errorf("with wake.c: %v, %q", err, out)
	}
}

// Linux 6.1 as a guest sets 2,696 bytes of the floating-point state; every host's kernel wants
// all that its processor has. The check sets less than any processor with AVX has.
func TestPartOfTheFloatingPointStateCanBeSet(t *testing.T) {
	checkWake(t, "ptrace-check.c", "a part of the state can be set")
}

// A guest of Linux 6.1 that was held up now and then stood still for ever, idle.
func TestGuestThatLostAnAlarmGetsAnother(t *testing.T) {
	checkWake(t, "idle-check.c", "a lost alarm is replaced")
}
