package helper

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/strictjson"
)

// drainTimeout is the time in which the last output of a program that has ended is read.
const drainTimeout = time.Second

// process is a running program with its pipes. Its readers end with it.
type process struct {
	options *Options
	cmd     *exec.Cmd
	group   *group // nil: it has no control group of its own
	in      *os.File
	out     []*os.File // the ends of the agent: standard output and standard error
	lines   chan line
	readers sync.WaitGroup
	kill    sync.Once
	killed  chan struct{} // closed by end
	exited  chan struct{} // closed when the program and its group have ended
	oom     bool          // it has reached its limit of memory; read after exited
}

// line is a line of standard output, or the reason why there are no more.
type line struct {
	text []byte
	why  Reason // empty: text is valid
}

// start starts the program.
func start(o *Options) (_ *process, err error) {
	p := &process{options: o, lines: make(chan line), killed: make(chan struct{}), exited: make(chan struct{})}
	var theirs, ours []*os.File // by descriptor in the program
	defer func() {
		closeAll(theirs)
		if err != nil {
			closeAll(ours)
			p.group.remove()
		}
	}()
	for fd := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if fd > 0 {
			r, w = w, r
		}
		theirs, ours = append(theirs, r), append(ours, w)
	}
	p.in, p.out = ours[0], ours[1:]
	closeOnExec()
	p.cmd = exec.Command(o.Program, o.Args...)
	p.cmd.Dir, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = "/", theirs[0], theirs[1], theirs[2]
	p.cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}, o.Environment...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if o.Cgroup != "" {
		if p.group, err = newGroup(o.Cgroup, o.Memory); err != nil {
			return nil, err
		}
		p.cmd.SysProcAttr.UseCgroupFD, p.cmd.SysProcAttr.CgroupFD = true, int(p.group.dir.Fd())
	}
	started := make(chan error)
	go p.supervise(started)
	if err = <-started; err != nil {
		return nil, err
	}
	p.readers.Go(p.readOutput)
	p.readers.Go(p.readErrors)
	return p, nil
}

// supervise starts the program and waits for its end. It keeps its thread: the kernel sends the death signal when the thread that
// started a process ends (prctl(2), PR_SET_PDEATHSIG).
func (p *process) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	if err == nil {
		if err = p.limit(); err != nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait() // it has been killed
		}
	}
	started <- err
	if err != nil {
		return
	}
	defer close(p.exited)
	// Until the program is waited for, its number belongs to no other process, so its group can be signaled.
	for errors.Is(unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	p.killAll()
	_ = p.cmd.Wait() // ProcessState has the result
	p.oom = p.group.outOfMemory() || !p.group.limitsMemory() && p.reachedLimit()
	p.group.remove()
	deadline := time.Now().Add(drainTimeout)
	for _, f := range p.out {
		_ = f.SetReadDeadline(deadline) // a pipe has deadlines
	}
}

// limit limits the memory of a program without a control group, and forbids core dumps.
func (p *process) limit() error {
	pid := p.cmd.Process.Pid
	err := unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	if p.options.Memory > 0 && !p.group.limitsMemory() {
		most := uint64(p.options.Memory)
		err = errors.Join(err, unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil))
	}
	if errors.Is(err, unix.ESRCH) {
		return nil // it has ended already
	}
	return err
}

// reachedLimit reports whether a program that failed had more than half of its limit in memory; the rest is reserved only. The kernel does not tell a refused allocation.
func (p *process) reachedLimit() bool {
	usage, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return ok && p.options.Memory > 0 && !p.cmd.ProcessState.Success() && int64(usage.Maxrss)<<10 >= p.options.Memory/2 //nolint:unconvert // int32 on arm
}

// killAll ends the program and all processes of its group.
func (p *process) killAll() {
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) // the group may be empty
	p.group.kill()
}

// end ends the program with its children and its readers.
func (p *process) end() {
	p.kill.Do(func() {
		close(p.killed)
		select {
		case <-p.exited:
		default:
			p.killAll()
		}
	})
	<-p.exited
	p.readers.Wait()
	closeAll(append(p.out, p.in))
}

func (p *process) hasEnded() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// ending is an error before the program is ended: after Crashed, with the reason why the program ended by itself.
func (p *process) ending(e *Error) *Error {
	if e.Reason != Crashed {
		return e
	}
	select {
	case <-p.exited:
	case <-time.After(drainTimeout):
		e.Text = "it closed its output"
		return e
	}
	if e.Text = "it ended: " + p.cmd.ProcessState.String(); p.oom {
		e.Reason, e.Text = OutOfMemory, fmt.Sprintf("it ended at its memory limit of %d bytes: %v", p.options.Memory, p.cmd.ProcessState)
	}
	return e
}

// exchange sends a request, unless it is nil, and returns the next message.
func (p *process) exchange(ctx context.Context, text []byte) (m message, err error) {
	fault := p.options.fault
	const late = "it did not reply in time"
	if text != nil {
		deadline, _ := ctx.Deadline() // Call sets one
		_ = p.in.SetWriteDeadline(deadline)
		stop := context.AfterFunc(ctx, func() { _ = p.in.SetWriteDeadline(time.Now()) })
		_, err := p.in.Write(text)
		stop()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return m, p.options.interrupted(ctx, late)
		case err != nil:
			return m, fault(Crashed, "", err)
		}
	}
	select {
	case l := <-p.lines:
		switch l.why {
		case "":
		case TooLong:
			return m, fault(TooLong, fmt.Sprintf("a message is longer than %d bytes", MaxLine), nil)
		default:
			return m, fault(l.why, "", nil)
		}
		if err := json.Unmarshal(l.text, &m); err != nil {
			return m, fault(Malformed, fmt.Sprintf("%q is no message: %v", shortened(string(l.text)), strictjson.Explain(err)), err)
		}
		return m, nil
	case <-ctx.Done():
		return m, p.options.interrupted(ctx, late)
	}
}

// readOutput passes the lines of standard output. It reads the next one only when the last was taken, so a program that floods it
// waits.
func (p *process) readOutput() {
	reader := bufio.NewReaderSize(p.out[0], 64<<10)
	for {
		text, why := readLine(reader)
		select {
		case p.lines <- line{text, why}:
		case <-p.killed:
			return
		}
		if why != "" {
			return
		}
	}
}

// readLine reads a line of at most MaxLine bytes.
func readLine(r *bufio.Reader) ([]byte, Reason) {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(text)+len(part) > MaxLine {
			return nil, TooLong
		}
		text = append(text, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(text, []byte("\n")), ""
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, Crashed
		}
	}
}

// closeOnExec keeps descriptors that the agent has inherited from its parent from the program; Go opens all others so.
func closeOnExec() {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc there is no list
	}
	for _, one := range all {
		if fd, err := strconv.Atoi(one.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

func closeAll[C io.Closer](all []C) {
	for _, one := range all {
		_ = one.Close() // a pipe has nothing to flush
	}
}
