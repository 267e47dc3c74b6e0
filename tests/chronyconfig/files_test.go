// Package chronyconfig tests the files of chrony-config/ with their programs: the real chronyd and gpsd load each of
// them, and the README's table of bounds is compared with the agent's values.
package chronyconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oneway.example/tests/lab"
	"oneway.example/tests/pulse"
)

// root is the directory under test.
const root = "../../chrony-config"

func TestMain(m *testing.M) {
	pulse.Shim()
	if address := os.Getenv(readerAddress); address != "" {
		os.Exit(readClock(address, os.Getenv(readerSocketDir)))
	}
	os.Exit(m.Run())
}

// need finds a program or skips with the reason.
func need(t *testing.T, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("SKIPPED, NOT PASSED: %s is not installed (Debian package %s)", program, debian)
	}
	return path
}

// needDaemons skips if chronyd and gpsd cannot run in a sandbox.
func needDaemons(t *testing.T) {
	t.Helper()
	lab.Require(t)
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, NOT PASSED: chronyd and gpsd are started as root, to see them drop root")
	}
	need(t, "chronyd", "chrony")
	need(t, "gpsd", "gpsd")
	need(t, "gpspipe", "gpsd-clients")
	need(t, "unshare", "util-linux")
	need(t, "setpriv", "util-linux")
}

// files are those that match a pattern under root; at least one must.
func files(t *testing.T, patterns ...string) (names []string) {
	t.Helper()
	for _, p := range patterns {
		some, err := filepath.Glob(filepath.Join(root, p))
		if err != nil || len(some) == 0 {
			t.Fatalf("no file matches %s (%v)", p, err)
		}
		names = append(names, some...)
	}
	slices.Sort(names)
	return names
}

// chronyFiles are all files that chronyd reads.
func chronyFiles(t *testing.T) []string { return files(t, "*/chrony.conf", "isolated/client.conf") }

// folders are the kinds of clock: directories with a chrony.conf.
func folders(t *testing.T) (names []string) {
	for _, f := range files(t, "*/chrony.conf") {
		names = append(names, filepath.Base(filepath.Dir(f)))
	}
	return names
}

// directives are a chrony.conf's lines without comments.
func directives(t *testing.T, name string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(read(t, name)) {
		if line = strings.TrimSpace(line); line != "" && !strings.ContainsAny(line[:1], "#!;%") {
			lines = append(lines, line)
		}
	}
	return lines
}

func read(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// absolute is for programs that run in another directory.
func absolute(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
