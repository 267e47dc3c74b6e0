package chronyconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestChronydAcceptsEveryFile(t *testing.T) {
	chronyd := need(t, "chronyd", "chrony")
	for _, name := range chronyFiles(t) {
		out, err := exec.CommandContext(t.Context(), chronyd, "-p", "-f", name).CombinedOutput()
		if err != nil {
			t.Errorf("chronyd -p -f %s: %v\n%s", name, err, out)
		}
	}
}

// The agent derives the kind of the source from these names only.
func TestReferenceIDsAreKnownToTheAgent(t *testing.T) {
	known := []string{"PPS", "NMEA", "PHC"}
	refid := regexp.MustCompile(`\brefid (\S+)`)
	for _, name := range chronyFiles(t) {
		for _, line := range directives(t, name) {
			if !strings.HasPrefix(line, "refclock ") {
				continue
			}
			if m := refid.FindStringSubmatch(line); m == nil || !slices.Contains(known, m[1]) {
				t.Errorf("%s: %q: want refid of %v", name, line, known)
			}
		}
	}
}

// Directives that every file must have, whatever the source; see the README's sections.
func TestEveryFileHasTheRequiredDirectives(t *testing.T) {
	want := []string{
		"leapsectz right/UTC", "leapsecmode system", "maxclockerror 1", "driftfile /var/lib/chrony/chrony.drift",
		"bindcmdaddress 127.0.0.1", "cmdallow 127.0.0.1", "bindcmdaddress ::1", "cmdallow ::1",
	}
	for _, name := range chronyFiles(t) {
		lines := directives(t, name)
		for _, w := range want {
			if !slices.Contains(lines, w) {
				t.Errorf("%s lacks %q", name, w)
			}
		}
		for _, line := range lines {
			if strings.HasPrefix(line, "smoothtime") || strings.Contains(line, " trust") {
				t.Errorf("%s: %q: smeared time, or a source that cannot be outvoted", name, line)
			}
			if strings.HasPrefix(line, "makestep") && strings.Fields(line)[2] != "3" {
				t.Errorf("%s: %q: steps at start only", name, line)
			}
		}
	}
}

// A refclock without delay claims that it has no constant error.
func TestEveryRefclockStatesItsConstantError(t *testing.T) {
	stated := regexp.MustCompile(`\bdelay [0-9.e-]+\b`)
	for _, name := range chronyFiles(t) {
		for _, line := range directives(t, name) {
			if strings.HasPrefix(line, "refclock ") && !stated.MatchString(line) {
				t.Errorf("%s: %q has no delay", name, line)
			}
		}
	}
}

// udevadm of systemd 252 cannot check a file, so the test checks its grammar.
func TestUdevRulesAreWellFormed(t *testing.T) {
	key := `[A-Z]+(\{[A-Za-z_]+\})?(==|\+=|=)"[^"]*"`
	line := regexp.MustCompile(`^` + key + `(, ` + key + `)*$`)
	for _, name := range files(t, "*/*.rules") {
		for _, l := range directives(t, name) {
			if !line.MatchString(l) {
				t.Errorf("%s: %q is not a rule", name, l)
			}
		}
		if !strings.Contains(read(t, name), "/etc/udev/rules.d/"+filepath.Base(name)) {
			t.Errorf("%s lacks its installation path", name)
		}
	}
}

// systemd itself reads the drop-ins, with empty units of the same names.
func TestSystemdAcceptsTheDropIns(t *testing.T) {
	checker := need(t, "systemd-analyze", "systemd")
	for _, name := range files(t, "systemd/*.conf") {
		// The first line is the installation path.
		into := regexp.MustCompile(`^# /etc/systemd/system/(([a-z]+\.service)\.d/` + regexp.QuoteMeta(filepath.Base(name)) + `)\n`)
		m := into.FindStringSubmatch(read(t, name))
		if m == nil {
			t.Errorf("%s lacks its installation path", name)
			continue
		}
		dir := t.TempDir()
		unit := "[Service]\nExecStart=/bin/true\n"
		for path, content := range map[string]string{"gpsd.service": unit, "chrony.service": unit, m[1]: read(t, name)} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.CommandContext(t.Context(), checker, "verify", "--man=no", filepath.Join(dir, m[2])).CombinedOutput()
		// It reports every unit of the host; messages about these units contain the directory.
		if err != nil || strings.Contains(string(out), dir) {
			t.Errorf("systemd refuses %s: %v\n%s", name, err, out)
		}
	}
}
