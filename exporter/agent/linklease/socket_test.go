package linklease

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSocketIsPrivate(t *testing.T) {
	l := newLessor(t, nil)
	l.take("uplink").Close()
	for name, want := range map[string]fs.FileMode{l.socket: 0o600, l.socket + ".lock": 0o600, filepath.Dir(l.socket): 0o755} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
}

func TestSocketIsForAGroupThatIsNamed(t *testing.T) {
	gid := os.Getgid()
	if os.Getuid() == 0 {
		gid++ // not the default group of the socket; only root may set a group that is not its own
	}
	group, err := user.LookupGroupId(strconv.Itoa(gid))
	if err != nil {
		t.Fatalf("name of group %d: %v", gid, err)
	}
	l := newLessor(t, func(o *Options) { o.Group = group.Name })
	l.dial("uplink").Close()
	l.eventually("the group may write", func() bool {
		info, err := os.Stat(l.socket)
		return err == nil && info.Mode().Perm() == 0o660 && info.Sys().(*syscall.Stat_t).Gid == uint32(gid)
	})
}

func TestStaleSocketIsReplacedAndOneInUseIsNot(t *testing.T) {
	dir := shortDir(t)
	socket := filepath.Join(dir, "agent.sock")
	dead, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	if _, err := Dial(t.Context(), socket, Test{}); !errors.As(err, new(*NoAgentError)) {
		t.Errorf("the socket of a terminated agent: %v", err)
	}
	l := newLessor(t, func(o *Options) { o.Socket = socket })
	l.take("uplink")
	second := newLessor(t, func(o *Options) { o.Socket = socket })
	second.eventually("the second agent logs the error", func() bool { return strings.Contains(second.log.String(), "another agent has the lock") })
	l.take("lab") // the first agent still serves
}

// A cleaner of /run must not leave load tests without their leases.
func TestRemovedSocketIsMadeAgain(t *testing.T) {
	l := newLessor(t, func(o *Options) { o.Socket = filepath.Join(shortDir(t), "oneway", "agent.sock") })
	l.take("uplink").Close()
	for _, remove := range []func(string) error{os.Remove, func(socket string) error { return os.RemoveAll(filepath.Dir(socket)) }} {
		if err := remove(l.socket); err != nil {
			t.Fatal(err)
		}
		l.eventually("the socket is there again", func() bool {
			_, err := os.Stat(l.socket)
			return err == nil
		})
		l.take("uplink").Close()
	}
	if n := strings.Count(l.log.String(), "was removed, and is made again"); n != 2 {
		t.Errorf("%d lines of the log, want 2: %s", n, l.log.String())
	}
}

// A test that finds no socket takes that for no agent, and runs without a lease.
func TestSocketStaysWhileDescriptorsRunOut(t *testing.T) {
	l := newLessor(t, nil)
	l.take("uplink").Close()
	client, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(client)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: 3, Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err = unix.Connect(client, &unix.SockaddrUnix{Name: l.socket})
	for range 20 {
		if err == nil {
			_, err = os.Stat(l.socket)
		}
		time.Sleep(10 * time.Millisecond) // the server has no sign that accept has failed
	}
	if restored := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); restored != nil || err != nil {
		t.Fatalf("%v, %v", restored, err)
	}
	l.take("uplink")
	if text := l.log.String(); strings.Contains(text, "cannot lease") {
		t.Error(text)
	}
}

func TestListenKeepsAFileThatIsNoSocket(t *testing.T) {
	file := filepath.Join(shortDir(t), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "no socket", "/" + strings.Repeat("x", 200): "must have at most 107"} {
		if _, _, err := listen(t.Context(), path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, _, err := listen(t.Context(), file+"2", "no such group"); err == nil {
		t.Error("listen accepted an unknown group")
	}
	if text, _ := os.ReadFile(file); string(text) != "mine" {
		t.Error("the file was removed")
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	l := newLessor(t, nil)
	l.dial("uplink").Close()
	if _, err := Dial(t.Context(), l.socket, Test{Link: "unknown"}); err == nil || err.Error() != "no such link" {
		t.Errorf("error is %v", err)
	}
	for name, c := range map[string]struct{ send, want string }{
		"version":  {`{"op":"terms","version":99,"test":{}}`, "another version"},
		"network":  {`{"op":"terms","version":1,"test":{},"network":"net:[1]"}`, `"other_network"`},
		"disorder": {`{"op":"take"}`, ""},
		"garbage":  {"GET / HTTP/1.1", ""},
		"too long": {strings.Repeat("x", 2*maxLine), ""},
		"not held": {`{"op":"keep_alive"}` + "\n" + `{"op":"settle"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", l.socket)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(timeout))
			fmt.Fprintln(conn, c.send)
			lines, said := bufio.NewScanner(conn), ""
			for lines.Scan() {
				said += lines.Text()
			}
			if errors.Is(lines.Err(), os.ErrDeadlineExceeded) || c.want == "" && said != "" || !strings.Contains(said, c.want) {
				t.Errorf("the reply is %q, %v", said, lines.Err())
			}
		})
	}
	if who, _, held := l.links.Holder("uplink"); held {
		t.Errorf("the link is held by %s", who)
	}
}
