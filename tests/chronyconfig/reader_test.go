package chronyconfig

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/chrony"
	"oneway.example/exporter/instant"
)

// The environment that makes this program an agent without root, which only asks.
const (
	readerAddress   = "ONEWAY_TEST_READ_CLOCK"
	readerSocketDir = "ONEWAY_TEST_SOCKET_DIR"
)

// readClock asks chronyd for a while and says what came of it.
func readClock(address, socketDir string) (status int) {
	m, err := chrony.New(chrony.Options{Address: address, SocketDir: socketDir, Interval: 100 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	go func() { _ = m.Run(ctx) }()
	// A reply is what counts: the clock itself follows nothing here.
	for ctx.Err() == nil {
		if q := m.Quality(instant.Now()); q.State == clock.Unsynchronized || q.Synchronized() {
			fmt.Println("answered")
			return 0
		}
		time.Sleep(20 * time.Millisecond) // between two looks; the monitor tells nobody
	}
	fmt.Println("no reply")
	return 0
}

// reader runs it inside as nobody, with these groups besides.
func (s *sandbox) reader(address, socketDir, group string) string {
	s.t.Helper()
	self := filepath.Join(s.dir, "reader")
	if _, err := os.Stat(self); err != nil {
		content, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(self, content, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	groups := "--clear-groups"
	if group != "" {
		groups = "--groups=" + group
	}
	return strings.TrimSpace(s.output("setpriv", "--reuid=65534", "--regid=65534", groups, "--bounding-set=-all", "--no-new-privs", "--",
		"env", readerAddress+"="+address, readerSocketDir+"="+socketDir, self))
}

// permissions.md says how an agent without root reads chronyd. Its own settings are
// used here, as nobody, without any capability.
func TestAgentWithoutRootReadsChronydAsThePageSays(t *testing.T) {
	needDaemons(t)
	t.Parallel()
	daemon, err := user.Lookup("_chrony")
	if err != nil {
		t.Skipf("SKIPPED, NOT PASSED: the group is that of Debian's chrony: %v", err)
	}
	s := newSandbox(t, "", "")
	// What systemd/chrony-group.conf makes of /run/chrony, and RuntimeDirectory=oneway
	// of /run/oneway.
	s.output("install", "-d", "-m", "0750", "-o", daemon.Uid, "-g", daemon.Gid, "/run/chrony")
	s.output("install", "-d", "-m", "0755", "-o", "65534", "-g", "65534", "/run/oneway")
	s.chronyd(filepath.Join(root, "ntp", "chrony.conf"))

	var udp, unix int
	for _, snippet := range snippets(t, filepath.Join(root, "permissions.md")) {
		c := snippet.clock
		group := ""
		if strings.HasPrefix(c.Address, "unix://") {
			unix++
			group = daemon.Gid
		} else {
			udp++
		}
		if got := s.reader(c.Address, c.SocketDir, group); got != "answered" {
			t.Errorf("%s: %s, socket_dir %q: %s", snippet.where, c.Address, c.SocketDir, got)
		}
		if group == "" {
			continue
		}
		if got := s.reader(c.Address, c.SocketDir, ""); got != "no reply" {
			t.Errorf("%s: without the group: %s", snippet.where, got)
		}
		// Without socket_dir our end would be put beside chronyd's, where the group must not write.
		if got := s.reader(c.Address, "", group); got != "no reply" {
			t.Errorf("%s: without socket_dir: %s", snippet.where, got)
		}
	}
	if udp == 0 || unix == 0 {
		t.Errorf("permissions.md shows %d agents over UDP and %d over the Unix socket; want both", udp, unix)
	}
}
