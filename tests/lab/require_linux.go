package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// TB is what Start and Require need of testing.TB; package testing itself
// would put its flags into every command that uses the lab.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(f func())
}

// Require skips the test, with the reason, where no lab can be made.
func Require(t TB) {
	t.Helper()
	if err := Available(); err != nil {
		t.Skipf("SKIPPED, NOT PASSED: no emulated network here: %v", err)
	}
}

// Start is Require and New for tests: the lab is closed when the test ends, and
// a fault of the lab fails the test.
func Start(t TB, o Options) *Lab {
	t.Helper()
	Require(t)
	l, err := New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Logf("lab: profile %q, seed %d", o.Profile.Name, o.Seed)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return l
}

// Available says why no lab can be made here, nil if it can.
func Available() error {
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("a new network namespace needs root or a user namespace: %w", err)
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("packet socket in a new network namespace: %w", err)
		}
		return unix.Close(fd)
	})
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		return fmt.Errorf("lab: %w (package util-linux)", err)
	}
	return nil
}

// inside marks the process that Main started.
const inside = "ONEWAY_LAB_USER_NAMESPACE"

// Main runs a program that needs the lab, as `unshare -Urn` would if it must:
// where the user may not make network namespaces it starts the same program
// again inside a user namespace, in which it may, and returns its exit status.
// Where the kernel does not allow that either, run is called as it is (tests
// then skip aloud). Use:
//
//	func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }
func Main(run func() int) int {
	if Available() == nil || os.Getenv(inside) != "" {
		return run()
	}
	// The child dies with the thread that started it, hence with us.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   unix.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "lab: user namespace: %v\n", err)
		return run()
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	fmt.Fprintf(os.Stderr, "lab: inside the user namespace: %v\n", err)
	return 1
}
