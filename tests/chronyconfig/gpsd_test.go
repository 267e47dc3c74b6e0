package chronyconfig

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/await"
	"oneway.example/tests/sandbox"
)

// gpsdArguments are those with which the unit starts gpsd from a default file: gpsd $GPSD_OPTIONS $OPTIONS $DEVICES
// (Debian's gpsd.service).
func gpsdArguments(t testing.TB, name string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-euc",
		`OPTIONS=; . "$1"; printf '%s\n' $GPSD_OPTIONS $OPTIONS $DEVICES`, "sh", absolute(t, name)).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return strings.Fields(string(out))
}

// gpsd starts gpsd with the default file's arguments, but in the foreground.
func (s *machine) gpsd(name string) *sandbox.Log {
	s.Helper()
	return s.Daemon("gpsd", append([]string{"-N"}, gpsdArguments(s, name)...)...)
}

func TestGpsdStartsWithEveryDefaultFile(t *testing.T) {
	needDaemons(t)
	t.Parallel()
	type running struct {
		*machine
		folder, device string
		log            *sandbox.Log
	}
	var all []running // all start first; the waits follow
	for _, name := range files(t, "*/gpsd") {
		r := running{folder: filepath.Base(filepath.Dir(name))}
		r.device = life[r.folder].device
		arguments := gpsdArguments(t, name)
		if !slices.Contains(arguments, "-n") || !slices.Contains(arguments, r.device) {
			t.Fatalf("%s: arguments %q: want -n, because chronyd is not a client, and %s", name, arguments, r.device)
		}
		r.machine = newMachine(t, openPTY(t), r.device)
		r.log = r.gpsd(name)
		all = append(all, r)
	}
	for _, r := range all {
		t.Run(r.folder, func(t *testing.T) {
			// The agent's default address: 127.0.0.1:2947. Its first line is the banner.
			var reply []byte
			if !await.Within(20*time.Second, func() bool {
				reply, _ = r.Command("gpspipe", "-w", "-n", "1", "127.0.0.1:2947").Output()
				return len(reply) > 0
			}) {
				t.Fatalf("gpsd does not reply:\n%s", r.log)
			}
			var banner struct{ Class, Release string }
			if err := json.Unmarshal(reply, &banner); err != nil || banner.Class != "VERSION" || banner.Release == "" {
				t.Errorf("got %q, want a VERSION: %v", reply, err)
			}
			if got := r.Run("gpspipe", "-w", "-n", "8", "-x", "20", "127.0.0.1:2947"); !strings.Contains(got, r.device) || !strings.Contains(got, `"class":"TPV"`) {
				t.Errorf("no fix of %s in\n%s", r.device, got)
			}
		})
	}
}
