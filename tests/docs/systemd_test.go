package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSystemdAcceptsTheUnitOfTheAgent: systemd itself reads it, with a program at the paths of its commands.
func TestSystemdAcceptsTheUnitOfTheAgent(t *testing.T) {
	const name = "oneway-agent.service"
	checker, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT TESTED: systemd-analyze is not installed (Debian package systemd)")
	}
	unit, err := os.ReadFile(filepath.Join(root, "deploy", "systemd", name))
	if err != nil {
		t.Fatal(err)
	}
	const program = "/usr/local/bin/oneway"
	if n := strings.Count(string(unit), "="+program+" "); n != 1 {
		t.Errorf("%s starts %s %d times, want 1", name, program, n)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(unit), "="+program+" ", "=/bin/true ")), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), checker, "verify", "--man=no", path).CombinedOutput()
	// It reports every unit of the host; messages about this one contain its name.
	if err != nil || strings.Contains(string(out), name) {
		t.Errorf("systemd does not accept %s: %v\n%s", name, err, out)
	}
}
