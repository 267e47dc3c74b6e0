package heavy

import (
	"bytes"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oneway.example/tests/lab"
)

// patience is how long anything may take that is only waited for.
const patience = 45 * time.Second

// process is a program under test.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr buffer
	done           chan struct{}
	ended          time.Time // once done is closed
}

// buffer is what a process has said so far.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write is io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start runs the program on a host. It is killed when the test ends, or this process does.
func start(t *testing.T, host *lab.Host, args ...string) *process {
	t.Helper()
	return launch(t, host.Command(binary, args...))
}

// launch is start of any program.
func launch(t *testing.T, c *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: c, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The signal comes with the death of the thread, which therefore stays for as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the status is in ProcessState
			p.ended = time.Now()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.signal(t, syscall.SIGKILL); <-p.done })
	return p
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	// One that has ended has been waited for, and its number is not used for another.
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, syscall.ESRCH) && !strings.Contains(err.Error(), "finished") {
		t.Error(err)
	}
}

// kill ends it without a word, and returns when it has ended.
func (p *process) kill(t *testing.T) time.Time {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	p.wait(t)
	return p.ended
}

// wait waits for its end and returns its exit status, -1 if a signal has ended it.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("%v has not ended after %v\n%s%s", p.cmd.Args, patience, &p.stdout, &p.stderr)
		return -1
	}
}

// eventually looks until f holds.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !f(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v", what, patience)
		}
		<-ticker.C
	}
}
