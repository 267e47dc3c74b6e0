package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/tests/lab"
)

// process is a program under test.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// ours starts this binary in a role on a host.
func ours(b *testing.B, host *lab.Host, role string, args ...string) *process {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := host.Command(self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return start(b, cmd)
}

func start(b *testing.B, cmd *exec.Cmd) *process {
	b.Helper()
	p := &process{cmd: cmd}
	cmd.Stderr = &p.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	p.stdin, p.stdout = stdin, bufio.NewReaderSize(stdout, 1<<20)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { // after a failure
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return p
}

// ready waits until a role reports that it listens.
func (p *process) ready(b *testing.B) {
	b.Helper()
	if text, err := p.stdout.ReadString('\n'); err != nil || strings.TrimSpace(text) != "ready" {
		b.Fatalf("%v: %q, %v\n%s", p.cmd.Args, text, err, &p.stderr)
	}
}

// await reads the output of a peer's server up to the line that contains word.
func (p *process) await(b *testing.B, word string) {
	b.Helper()
	for {
		text, err := p.stdout.ReadString('\n')
		if err != nil {
			b.Fatalf("%v: no %q: %v\n%s", p.cmd.Args, word, err, &p.stderr)
		}
		if strings.Contains(text, word) {
			return
		}
	}
}

// finish ends a role by closing its input, reads its report, and returns its total CPU time.
func (p *process) finish(b *testing.B, report any) (cpu time.Duration) {
	b.Helper()
	p.stdin.Close()
	return p.wait(b, report)
}

// wait is finish for a program that ends by itself. report may be nil.
func (p *process) wait(b *testing.B, report any) (cpu time.Duration) {
	b.Helper()
	out, readErr := io.ReadAll(p.stdout)
	err := p.cmd.Wait()
	if err != nil || readErr != nil {
		b.Fatalf("%v: %v, %v\n%s%s", p.cmd.Args, err, readErr, &p.stderr, out)
	}
	if report != nil {
		if err := json.Unmarshal(out, report); err != nil {
			b.Fatalf("%v: %v in %.300s", p.cmd.Args, err, out)
		}
	}
	return p.used()
}

// stop interrupts a peer's server and returns its CPU time.
func (p *process) stop(b *testing.B) (cpu time.Duration) {
	b.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	kill := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	_, _ = io.Copy(io.Discard, p.stdout)
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		b.Fatal(err)
	}
	return p.used()
}

func (p *process) used() time.Duration {
	s := p.cmd.ProcessState
	return s.UserTime() + s.SystemTime()
}

// perMillion is CPU seconds per million packets.
func perMillion(cpu time.Duration, packets uint64) float64 {
	if packets == 0 {
		return 0
	}
	return cpu.Seconds() / float64(packets) * 1e6
}
