package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSystemdAcceptsTheUnits: systemd itself reads them, with the program at a path of its commands, and rates how much they may do.
func TestSystemdAcceptsTheUnits(t *testing.T) {
	checker, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT TESTED: systemd-analyze is not installed (Debian package systemd)")
	}
	units := t.TempDir()
	if err := os.CopyFS(units, os.DirFS(filepath.Join(root, "deploy", "systemd"))); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(units, "*.service"))
	if err != nil || len(names) != 3 {
		t.Fatalf("units %q, %v; want 3", names, err)
	}
	for _, path := range names {
		name := filepath.Base(path)
		text := strings.Replace(read(t, path), "\nExecStart=oneway ", "\nExecStart=/bin/true ", 1)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		analyze := func(args ...string) string {
			c := exec.CommandContext(t.Context(), checker, args...)
			c.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+units+":")
			out, err := c.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
			return string(out)
		}
		// It reports every unit of the host; messages about this one contain its name.
		if out := analyze("verify", "--man=no", path); strings.Contains(out, name) {
			t.Errorf("systemd does not accept %s:\n%s", name, out)
		}
		analyze("security", "--offline=true", "--threshold=20", "--no-pager", path) // tenths
	}
}
