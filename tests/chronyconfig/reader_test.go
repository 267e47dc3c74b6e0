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
	"oneway.example/exporter/clocks/chrony"
	"oneway.example/exporter/core/instant"
)

// With these environment variables this program is an agent without root that only reads chronyd.
const (
	readerAddress   = "ONEWAY_TEST_READ_CLOCK"
	readerSocketDir = "ONEWAY_TEST_SOCKET_DIR"
)

// readClock queries chronyd for a while and prints the result.
func readClock(address, socketDir string) (status int) {
	m, err := chrony.New(chrony.Options{Address: address, SocketDir: socketDir, Interval: 100 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	go func() { _ = m.Run(ctx) }()
	// Any reply counts: the clock itself is not synchronized here.
	for ctx.Err() == nil {
		if q := m.Quality(instant.Now()); q.State == clock.Unsynchronized || q.Synchronized() {
			fmt.Println("answered")
			return 0
		}
		time.Sleep(20 * time.Millisecond) // the monitor sends no notification
	}
	fmt.Println("no reply")
	return 0
}

// reader runs it inside as nobody, with an additional group.
func (s *machine) reader(address, socketDir, group string) string {
	s.Helper()
	self := filepath.Join(s.Dir, "reader")
	if _, err := os.Stat(self); err != nil {
		content, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(self, content, 0o755); err != nil {
			s.Fatal(err)
		}
	}
	groups := "--clear-groups"
	if group != "" {
		groups = "--groups=" + group
	}
	return strings.TrimSpace(s.Run("setpriv", "--reuid=65534", "--regid=65534", groups, "--bounding-set=-all", "--no-new-privs", "--",
		"env", readerAddress+"="+address, readerSocketDir+"="+socketDir, self))
}

// permissions.md describes how an agent without root reads chronyd. The test uses its settings as nobody, without any
// capability.
func TestAgentWithoutRootReadsChronydAsDocumented(t *testing.T) {
	needDaemons(t)
	t.Parallel()
	daemon, err := user.Lookup("_chrony")
	if err != nil {
		t.Skipf("SKIPPED, NOT PASSED: the group is that of Debian's chrony: %v", err)
	}
	s := newMachine(t, "", "")
	// The modes that systemd/chrony-group.conf sets on /run/chrony, and RuntimeDirectory=oneway on /run/oneway.
	s.Run("install", "-d", "-m", "0750", "-o", daemon.Uid, "-g", daemon.Gid, "/run/chrony")
	s.Run("install", "-d", "-m", "0755", "-o", "65534", "-g", "65534", "/run/oneway")
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
			t.Errorf("%s: without the group: got %s, want no reply", snippet.where, got)
		}
		// Without socket_dir the agent's socket would be beside chronyd's, where the group must not write.
		if got := s.reader(c.Address, "", group); got != "no reply" {
			t.Errorf("%s: without socket_dir: got %s, want no reply", snippet.where, got)
		}
	}
	if udp == 0 || unix == 0 {
		t.Errorf("permissions.md shows %d agents over UDP and %d over the Unix socket; want both", udp, unix)
	}
}
