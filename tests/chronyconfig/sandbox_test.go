package chronyconfig

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"oneway.example/tests/await"
)

// sandbox is a network, a /run, a /dev, a /var/lib, a /var/log and System V shared memory of its own, so that files are
// loaded with the paths in them, no packet leaves, and no other chronyd or gpsd of this host is affected.
type sandbox struct {
	t   *testing.T
	dir string // contains run, dev, lib, log; the same path inside and outside
	pid int    // of a process inside
}

// setup makes the sandbox. A receiver's pty has its name in /dev, and the names of NTP servers resolve to a second
// chronyd on loopback.
const setup = `set -e
ip link set lo up
mkdir -p "$1/run" "$1/lib" "$1/log" "$1/dev" "$1/client"
chmod 755 "$1" "$1/run" "$1/dev"; chmod 777 "$1/client"
mount -t tmpfs none "$1/dev"; mkdir "$1/dev/pts"
for n in null zero full random urandom tty; do touch "$1/dev/$n"; mount --bind "/dev/$n" "$1/dev/$n"; done
mount --rbind /dev/pts "$1/dev/pts"
[ -z "$2" ] || ln -s "$2" "$1$3"
printf '127.0.0.1 localhost\n127.0.0.11 ntp1.example.net\n127.0.0.12 ntp2.example.net\n127.0.0.13 ntp3.example.net\n127.0.0.14 ntp4.example.net\n' >"$1/hosts"
printf 'hosts: files\n' >"$1/nsswitch"
mount --bind "$1/hosts" /etc/hosts
[ ! -e /etc/nsswitch.conf ] || mount --bind "$1/nsswitch" /etc/nsswitch.conf
mount --bind "$1/run" /run
mount --bind "$1/lib" /var/lib
mount --bind "$1/log" /var/log
mount --rbind "$1/dev" /dev
echo ready
exec cat
`

// newSandbox lasts until the test ends. receiver is a pty and device its name inside; both may be empty.
func newSandbox(t *testing.T, receiver, device string) *sandbox {
	t.Helper()
	dir, err := os.MkdirTemp("", "oneway") // short: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd := exec.Command("unshare", "--mount", "--net", "--ipc", "--propagation", "private", "--", "sh", "-c", setup, "sh", dir, receiver, device)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() }) // cat ends with its input
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("sandbox: %q, %v: %s", line, err, complaint.String())
	}
	return &sandbox{t: t, dir: dir, pid: cmd.Process.Pid}
}

// command runs a program inside; its process id is the program's.
func (s *sandbox) command(name string, args ...string) *exec.Cmd {
	return exec.CommandContext(s.t.Context(), "nsenter",
		append([]string{"--target", fmt.Sprint(s.pid), "--mount", "--net", "--ipc", "--", name}, args...)...)
}

// output runs a program inside to its end.
func (s *sandbox) output(name string, args ...string) string {
	s.t.Helper()
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		s.t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// logbook is a daemon's output so far.
type logbook struct {
	await.Text
	done chan struct{}
}

// daemon starts a program that must run until the test ends.
func (s *sandbox) daemon(name string, args ...string) *logbook {
	s.t.Helper()
	l := &logbook{done: make(chan struct{})}
	cmd := exec.Command("nsenter", s.command(name, args...).Args[1:]...)
	cmd.Stdout, cmd.Stderr = l, l
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	stopping := make(chan struct{})
	go func() {
		defer close(l.done)
		err := cmd.Wait()
		select {
		case <-stopping:
		default:
			s.t.Errorf("%s %v ended: %v\n%s", name, args, err, l)
		}
	}()
	s.t.Cleanup(func() {
		close(stopping)
		_ = cmd.Process.Signal(unix.SIGTERM)
		select {
		case <-l.done:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-l.done
		}
	})
	return l
}

// path is the outside path of an inside path, which must be below /run.
func (s *sandbox) path(inside string) string { return filepath.Join(s.dir, inside) }
