// Package process runs a program in tests: started, sent signals, killed, and ended with the test, whatever its result.
package process

import (
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"oneway.example/tests/await"
)

// TB is what this package needs of testing.TB.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Error(args ...any)
	Cleanup(f func())
}

// Process is a started program.
type Process struct {
	Cmd *exec.Cmd
	// Stdout and Stderr are its output so far.
	Stdout, Stderr await.Text
	// Done is closed when it has ended; Ended is the time of that.
	Done  chan struct{}
	Ended time.Time
}

// Run starts a command. It is killed when the test ends, or this process does.
func Run(t TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: cmd, Done: make(chan struct{})}
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
func (p *Process) Signal(t TB, s syscall.Signal) {
	t.Helper()
	// One that has ended has been waited for, and its number is not used for another.
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, syscall.ESRCH) && !strings.Contains(err.Error(), "finished") {
		t.Error(err)
	}
}

// Kill sends SIGKILL, and returns when it has ended.
func (p *Process) Kill(t TB) time.Time {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	p.Wait(t)
	return p.Ended
}

// Wait waits for its end and returns its exit status, -1 if a signal has ended it.
func (p *Process) Wait(t TB) int {
	t.Helper()
	select {
	case <-p.Done:
		return p.Cmd.ProcessState.ExitCode()
	case <-time.After(await.Timeout):
		t.Fatalf("%v has not ended after %v\n%s%s", p.Cmd.Args, await.Timeout, &p.Stdout, &p.Stderr)
		return -1
	}
}
