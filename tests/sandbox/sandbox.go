// Package sandbox runs daemons of this host with the paths of their configuration files, in a network, a /run, a /dev, a /var/lib, a
// /var/log and System V shared memory of their own: no packet leaves, and no other chronyd or gpsd is affected.
package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/tests/await"
	"oneway.example/tests/pulse"
	"oneway.example/tests/testseed"
)

// Sandbox is one; it lasts until the test ends.
type Sandbox struct {
	testing.TB
	// Dir contains run, dev, lib and log; it is the same path inside and outside.
	Dir string
	// Pid is that of a process inside.
	Pid int
	// start starts the commands of Daemon.
	start func(*exec.Cmd) error
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

// New makes one. receiver is a pty and device its name inside; both may be empty.
func New(t testing.TB, receiver, device string) *Sandbox {
	t.Helper()
	dir, err := os.MkdirTemp("", "oneway") // short: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
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
	return &Sandbox{TB: t, Dir: dir, Pid: cmd.Process.Pid, start: (*exec.Cmd).Start}
}

// Pulse makes /dev/pps0 for the daemons that are started afterwards. TestMain must call pulse.Shim.
func (s *Sandbox) Pulse(settings pulse.Settings) *pulse.Device {
	s.Helper()
	log := slog.New(slog.NewTextHandler(s.Output(), nil))
	d, err := pulse.Create(fmt.Sprintf("/proc/%d/root/dev/pps0", s.Pid), settings, testseed.Of(s), log)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := d.Close(); err != nil {
			s.Error(err)
		}
	})
	s.start = d.Start
	return d
}

// Command runs a program inside; its process id is the program's.
func (s *Sandbox) Command(name string, args ...string) *exec.Cmd {
	return exec.CommandContext(s.Context(), "nsenter",
		append([]string{"--target", fmt.Sprint(s.Pid), "--mount", "--net", "--ipc", "--", name}, args...)...)
}

// Run runs a program inside to its end, and returns its output.
func (s *Sandbox) Run(name string, args ...string) string {
	s.Helper()
	out, err := s.Command(name, args...).CombinedOutput()
	if err != nil {
		s.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// Log is a daemon's output so far.
type Log struct {
	await.Text
	done chan struct{}
}

// Daemon starts a program that must run until the test ends.
func (s *Sandbox) Daemon(name string, args ...string) *Log {
	s.Helper()
	l := &Log{done: make(chan struct{})}
	cmd := exec.Command("nsenter", s.Command(name, args...).Args[1:]...)
	cmd.Stdout, cmd.Stderr = l, l
	if err := s.start(cmd); err != nil {
		s.Fatal(err)
	}
	stopping := make(chan struct{})
	go func() {
		defer close(l.done)
		err := cmd.Wait()
		select {
		case <-stopping:
		default:
			s.Errorf("%s %v ended: %v\n%s", name, args, err, l)
		}
	}()
	s.Cleanup(func() {
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

// Path is the outside path of an inside path, which must be below /run.
func (s *Sandbox) Path(inside string) string { return filepath.Join(s.Dir, inside) }
