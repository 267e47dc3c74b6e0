// Package program runs a program under test on a host of an emulated network: started, sent
// signals, killed, and ended with the test, whatever its result.
package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"oneway.example/tests/await"
	"oneway.example/tests/lab"
)

// Timeout is the longest wait for anything.
const Timeout = await.Timeout

// TB is what this package needs of testing.TB.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Error(args ...any)
	Cleanup(f func())
}

// Program is a started program.
type Program struct {
	Cmd *exec.Cmd
	// Stdout and Stderr are its output so far.
	Stdout, Stderr await.Text
	// Done is closed when it has ended; Ended is the time of that.
	Done  chan struct{}
	Ended time.Time
}

// Start runs a program on a host. It is killed when the test ends, or this process does.
func Start(t TB, host *lab.Host, name string, args ...string) *Program {
	t.Helper()
	p := &Program{Cmd: host.Command(name, args...), Done: make(chan struct{})}
	p.Cmd.Stdout, p.Cmd.Stderr = &p.Stdout, &p.Stderr
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The kernel sends the signal at the end of the thread, so the thread is kept.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.Cmd.Start()
		started <- err
		if err == nil {
			_ = p.Cmd.Wait() // the status is in ProcessState
			p.Ended = time.Now()
			close(p.Done)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Signal(t, syscall.SIGKILL); <-p.Done })
	return p
}

// Signal sends it a signal, unless it has ended.
func (p *Program) Signal(t TB, s syscall.Signal) {
	t.Helper()
	// One that has ended has been waited for, and its number is not used for another.
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, syscall.ESRCH) && !strings.Contains(err.Error(), "finished") {
		t.Error(err)
	}
}

// Kill sends SIGKILL, and returns when it has ended.
func (p *Program) Kill(t TB) time.Time {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	p.Wait(t)
	return p.Ended
}

// Wait waits for its end and returns its exit status, -1 if a signal has ended it.
func (p *Program) Wait(t TB) int {
	t.Helper()
	select {
	case <-p.Done:
		return p.Cmd.ProcessState.ExitCode()
	case <-time.After(Timeout):
		t.Fatalf("%v has not ended after %v\n%s%s", p.Cmd.Args, Timeout, &p.Stdout, &p.Stderr)
		return -1
	}
}

// Eventually is await.That.
func Eventually(t TB, what string, f func() bool) {
	t.Helper()
	await.That(t, what, f)
}

// Main builds the program `oneway` once, passes its file to build, and runs the tests; without a
// lab every test skips, with the reason. It is for TestMain.
func Main(run func() int, build func(binary string)) int {
	return lab.Main(func() int {
		if lab.Available() != nil {
			return run()
		}
		dir, err := os.MkdirTemp("", "oneway-test")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		binary := filepath.Join(dir, "oneway")
		if out, err := exec.Command("go", "build", "-o", binary, "oneway.example/exporter/cmd/oneway").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		build(binary)
		return run()
	})
}

// Client is an HTTP client on a host.
func Client(t TB, host *lab.Host) *http.Client {
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return host.DialContext(ctx, network, address)
	}}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// Serves waits until the program, an agent, reports at an address that it is healthy.
func (p *Program) Serves(t TB, c *http.Client, address string) {
	t.Helper()
	Eventually(t, "the agent serves", func() bool {
		select {
		case <-p.Done:
			t.Fatalf("the agent has ended: %s", &p.Stderr)
		default:
		}
		r, err := c.Get("http://" + address + "/-/healthy")
		if err != nil {
			return false
		}
		r.Body.Close()
		return true
	})
}
