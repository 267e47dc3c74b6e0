package abuse

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/tests/remoteend"
)

// onOwnMounts is set in the process that runs the test again in its own mount namespace.
const onOwnMounts = "ONEWAY_ABUSE_OWN_MOUNTS"

// apart runs the test again in a process with its own mount namespace; true: this is that process.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(onOwnMounts) != "" {
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: a small disk needs root")
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), onOwnMounts+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := c.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("NOT TESTED: a small disk needs a mount namespace: %v", err)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// disk is a file system of a few blocks.
type disk struct {
	t   *testing.T
	dir string
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t, t.TempDir()}
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

// fill uses all free blocks, until free is called.
func (d *disk) fill() (free func()) {
	d.t.Helper()
	name := filepath.Join(d.dir, "others")
	err := os.WriteFile(name, bytes.Repeat([]byte("x"), 1<<20), 0o600)
	if !errors.Is(err, unix.ENOSPC) {
		d.t.Fatalf("write 1 MB to a disk of 64 KiB: got %v", err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			d.t.Fatal(err)
		}
	}
}

// seal makes it read-only, for root, too, until unseal is called.
func (d *disk) seal() (unseal func()) {
	d.t.Helper()
	remount := func(flags uintptr) {
		if err := unix.Mount("", d.dir, "", unix.MS_REMOUNT|flags, "size=64k"); err != nil {
			d.t.Fatal(err)
		}
	}
	remount(unix.MS_RDONLY)
	return func() { remount(0) }
}

// A load server that cannot save a token's usage would lose it on a restart: it refuses sessions until it can.
func TestLoadServerKeepsTheUsageOfTokensOnAFullOrReadOnlyDisk(t *testing.T) {
	if !apart(t) {
		return
	}
	const perDay, session = 100_000_000, 60_000_000
	for name, spoil := range map[string]func(*disk) func(){"full": (*disk).fill, "read-only": (*disk).seal} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			limited, text, err := loadserver.NewToken("client", loadcontrol.Limits{BytesPerDay: perDay})
			if err != nil {
				t.Fatal(err)
			}
			tokens := filepath.Join(d.dir, "tokens")
			if err := loadserver.AppendToken(tokens, limited); err != nil {
				t.Fatal(err)
			}
			free, freeText, err := loadserver.NewToken("free", loadcontrol.Limits{})
			if err == nil {
				err = loadserver.AppendToken(tokens, free)
			}
			if err != nil {
				t.Fatal(err)
			}
			at, pin, kill := respondApart(t, d.dir)
			open := func(token string, bytes int64) error {
				c, err := loadcontrol.Dial(t.Context(), loadcontrol.ClientOptions{Address: at, Pin: pin, Token: token})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				_, err = udptraffic.Open(t.Context(), c, loadcontrol.Open{Test: "saturation", Run: "disk", Bytes: bytes, Duration: time.Minute})
				return err
			}
			mend := spoil(d)
			granted := int64(0)
			for range 3 { // each ends without a close, and so may have used all of its reservation
				switch err := open(text, session); {
				case err == nil:
					granted += session
				case remoteend.Refusal(t, err).Reason != loadcontrol.Unsaved:
					t.Errorf("session with a disk that is %s: %v", name, err)
				}
				kill()
				at, pin, kill = respondApart(t, d.dir)
			}
			if granted > perDay {
				t.Errorf("with a disk that is %s, a token of %d bytes a day was granted %d", name, perDay, granted)
			}
			if err := open(freeText, session); err != nil {
				t.Errorf("token without a daily quota: %v", err)
			}
			kill()
			mend()
			at, pin, kill = respondApart(t, d.dir)
			if err := open(text, session); err != nil {
				t.Errorf("session after the disk works again: %v", err)
			}
			kill()
			at, pin, _ = respondApart(t, d.dir)
			if err := open(text, perDay-session+1); remoteend.Refusal(t, err).Reason != loadcontrol.DayLimit {
				t.Errorf("session above the remaining quota: got %v", err)
			}
			if err := open(text, perDay-session); err != nil {
				t.Errorf("session of the remaining quota: %v", err)
			}
		})
	}
}
