package pulse_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/tests/pulse"
)

// childDevice is set in the environment of a child: the device that it fetches pulses of.
const childDevice = "ONEWAY_PULSE_TEST"

// child prints the capabilities of /dev/null and of the device, and then fetches pulses from several threads until an error.
func child(device string) error {
	null, err := unix.Open("/dev/null", unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = unix.IoctlGetUint32(null, unix.PPS_GETCAP)
	fmt.Println("null:", err)
	fd, err := unix.Open(device, unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	able, err := unix.IoctlGetUint32(fd, unix.PPS_GETCAP)
	fmt.Printf("device: %#x %v\n", able, err)
	var errno unix.Errno
	for range 2 { // there may be a pulse in one
		if _, errno = fetch(fd, unix.PPSKTime{Nsec: 20_000_000}); errno != 0 {
			break
		}
	}
	fmt.Println("20 ms:", errno)
	var threads sync.WaitGroup
	for range 8 {
		threads.Go(func() {
			for {
				sequence, errno := fetch(fd, unix.PPSKTime{Flags: 1}) // PPS_TIME_INVALID: no timeout
				if errno != 0 {
					fmt.Println("end:", errno)
					return
				}
				fmt.Println("pulse", sequence)
			}
		})
	}
	threads.Wait()
	return nil
}

func fetch(fd int, timeout unix.PPSKTime) (sequence uint32, errno unix.Errno) {
	data := unix.PPSFData{Timeout: timeout}
	_, _, errno = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PPS_FETCH, uintptr(unsafe.Pointer(&data)))
	return data.Info.Assert_sequence, errno
}

// lines are those of a child's output.
type lines struct {
	*bufio.Scanner
	t *testing.T
}

// begin reads what a child prints before its threads.
func begin(t *testing.T, out io.Reader) lines {
	t.Helper()
	l := lines{bufio.NewScanner(out), t}
	l.expect("null: inappropriate ioctl for device") // the kernel's reply
	l.expect("device: 0x1111 <nil>")
	l.expect("20 ms: connection timed out")
	return l
}

func (l lines) expect(want string) {
	l.t.Helper()
	if !l.Scan() || l.Text() != want {
		l.t.Fatalf("got %q, want %q: %v", l.Text(), want, l.Err())
	}
}

// pulses reads n of each of the eight threads, and all that follow until the end of the output.
func (l lines) pulses(n int) {
	l.t.Helper()
	for range 8 * n {
		if !l.Scan() || !strings.HasPrefix(l.Text(), "pulse ") {
			l.t.Fatalf("got %q, want a pulse: %v", l.Text(), l.Err())
		}
	}
}

// ends reads the rest: each thread must have got this error.
func (l lines) ends(want unix.Errno) {
	l.t.Helper()
	ended := 0
	for l.Scan() {
		switch {
		case l.Text() == "end: "+want.Error():
			ended++
		case !strings.HasPrefix(l.Text(), "pulse "):
			l.t.Errorf("got %q", l.Text())
		}
	}
	if ended != 8 {
		l.t.Errorf("%d of 8 threads got %v", ended, want)
	}
}

func childCommand(device string, name string, args ...string) (*exec.Cmd, io.ReadCloser, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), childDevice+"="+device)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	return cmd, out, err
}

// A 32-bit program has its timeout elsewhere.
func TestWaitEndsWithAnErrorWhenTheDeviceEnds(t *testing.T) {
	needRoot(t)
	t.Parallel()
	for _, goarch := range architectures() {
		t.Run(goarch, func(t *testing.T) {
			t.Parallel()
			device := filepath.Join(t.TempDir(), "pps7")
			d, err := pulse.Create(device, pulse.Settings{}, 1, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			cmd, out, err := childCommand(device, compile(t, "oneway.example/tests/pulse", goarch))
			if err == nil {
				err = d.Start(cmd)
			}
			if err != nil {
				t.Fatal(err)
			}
			l := begin(t, out)
			l.pulses(2)
			if err := d.Set(pulse.Settings{Stopped: true}); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			l.ends(unix.ENOSYS)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(device); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the node remains: %v", err)
			}
		})
	}
}

// program builds oneway-pulse.
func program(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "oneway-pulse")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "oneway.example/tests/pulse/cmd/oneway-pulse").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

func TestWaitEndsWithAnErrorWhenTheLauncherIsKilled(t *testing.T) {
	needRoot(t)
	t.Parallel()
	device := filepath.Join(t.TempDir(), "pps7")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary := program(t)
	for range 2 { // the second one finds the node of the first one
		cmd, out, err := childCommand(device, binary, "-device", device, "--", self)
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		l := begin(t, out)
		l.pulses(1)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		l.ends(unix.ENOSYS)
		_ = cmd.Wait() // it was killed
	}
}

func TestLauncherEndsAllProgramsTogether(t *testing.T) {
	needRoot(t)
	t.Parallel()
	binary := program(t)
	for _, c := range []struct {
		what string
		args []string
		want string
	}{
		{"one ends", []string{"--", "sleep", "600", "--", "sh", "-c", "exit 7"}, "oneway-pulse: sh: exit status 7"},
		{"one is missing", []string{"--", "sleep", "600", "--", "no-such-program"}, `"no-such-program": executable file not found`},
		{"none", nil, "no program"},
		{"an unknown setting", []string{"-pulse.ofset=1s", "--", "true"}, "not defined"},
		{"a setting out of range", []string{"-pulse.offset=1s", "--", "true"}, "offset is 1s"},
	} {
		began := time.Now()
		device := filepath.Join(t.TempDir(), "pps7")
		out, err := exec.CommandContext(t.Context(), binary, append([]string{"-device", device}, c.args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) || time.Since(began) > time.Minute {
			t.Errorf("%s: %v after %v: %s", c.what, err, time.Since(began), out)
		}
		if _, err := os.Lstat(device); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the node remains: %v", c.what, err)
		}
	}
}
