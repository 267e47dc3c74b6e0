package vmlab

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

// Options of a guest. Name, Dir, Init and Line are required.
type Options struct {
	// Kernel is the guest's kernel, a program of ARCH=um; empty: Debian's linux.uml.
	Kernel string
	// Name is the host name, and part of file names.
	Name string
	// Dir is an absolute directory of this guest only, in memory (/dev/shm): the guest
	// stands still while the host writes to a disk. In the guest it is record.Dir.
	Dir string
	// Logs is a directory of the host, on any disk, for the guest's console output; empty: Dir.
	Logs string
	// Init is the absolute path of cmd/guest, linked statically.
	Init string
	// Network and Tap connect vec0, with Address ("10.9.0.1/24"); nil: no network.
	Network *Network
	Capture string
	Address string
	// Serial is the path of a terminal on the host, /dev/ttyS0 in the guest; empty: none.
	Serial string
	// Processor is the host's processor of the guest, from 1; zero: any. Two guests on one
	// interrupt each other at every packet.
	Processor int
	// Memory in MB; zero: 192.
	Memory int
	// Line is the truth.
	Line truth.Line
	// Devices gives the guest a /dev of its own kernel, which must have devtmpfs.
	Devices bool
	// Preload is the absolute path of uml/wake.c, compiled; empty: frames wait for a guest
	// that sleeps.
	Preload string
	// Further kernel parameters.
	Parameters []string
}

// Guest is a running kernel. Its methods may be called from any goroutine.
type Guest struct {
	Options
	cmd     *exec.Cmd
	console io.WriteCloser
	ended   chan struct{} // closed when the kernel has ended
	status  error         // exit status of the kernel; read it after ended
	boot    chan record.Reply

	mu      sync.Mutex
	id      int
	waiting map[int]chan record.Reply
}

// bootTimeout bounds the time until a guest replies; it takes 2 s on an idle host.
const bootTimeout = 60 * time.Second

// commandTimeout bounds a command; the longest are the kernel tests, which end after 4 minutes.
const commandTimeout = 5 * time.Minute

// Start boots a guest and waits until it is up.
func Start(o Options) (*Guest, error) {
	if o.Kernel == "" {
		o.Kernel = "linux.uml"
	}
	if o.Memory == 0 {
		o.Memory = 192
	}
	o.Logs = cmp.Or(o.Logs, o.Dir)
	for _, dir := range []string{o.Dir, o.Logs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("vmlab: %w", err)
		}
	}
	boot, err := json.Marshal(record.Boot{Name: o.Name, Address: o.Address, Line: o.Line, Devices: o.Devices})
	if err != nil {
		return nil, fmt.Errorf("vmlab: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, record.BootFile), boot, 0o644); err != nil {
		return nil, fmt.Errorf("vmlab: %w", err)
	}
	g := &Guest{Options: o, ended: make(chan struct{}), boot: make(chan record.Reply, 1), waiting: map[int]chan record.Reply{}}
	if err := g.begin(); err != nil {
		return nil, fmt.Errorf("vmlab: guest %s: %w", o.Name, err)
	}
	select {
	case r := <-g.boot:
		if r.Error != "" {
			return nil, errors.Join(fmt.Errorf("vmlab: guest %s: %s", o.Name, r.Error), g.Close())
		}
		return g, nil
	case <-g.ended:
		return nil, g.failure(fmt.Sprintf("the kernel ended while it booted (%s)", g.outcome()))
	case <-time.After(bootTimeout):
		return nil, errors.Join(g.failure(fmt.Sprintf("not up after %v", bootTimeout)), g.Close())
	}
}

func (g *Guest) log() string { return filepath.Join(g.Logs, "console.log") }

// guestNice gives guests priority over other load of the host.
const guestNice = -15

// begin starts the kernel.
func (g *Guest) begin() error {
	g.cmd = exec.Command(g.Kernel, g.parameters()...)
	// UML's temporary memory file and its own directory must not be shared.
	g.cmd.Env = append(os.Environ(), "TMPDIR=/dev/shm", "HOME="+g.Dir, "LD_PRELOAD="+g.Preload)
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := g.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	log, err := os.Create(g.log())
	if err != nil {
		return err
	}
	g.console, g.cmd.Stderr = in, log
	start := g.cmd.Start
	if g.Network != nil {
		start = func() error { return g.Network.start(g.cmd) }
	}
	if err := start(); err != nil {
		return errors.Join(err, log.Close())
	}
	// A guest that waits for a processor appears as a host that stands still. Without the right
	// to set it the lab is less precise.
	_ = shortSlice(g.cmd.Process.Pid, guestNice)
	if g.Processor > 0 && g.Processor <= runtime.NumCPU() {
		var one unix.CPUSet
		one.Set(g.Processor - 1)
		_ = unix.SchedSetaffinity(g.cmd.Process.Pid, &one)
	}
	go func() {
		defer close(g.ended)
		g.listen(out, log)
		g.status = g.cmd.Wait() // a guest may end with any status
		_ = log.Close()
	}()
	return nil
}

func (g *Guest) parameters() []string {
	p := []string{
		"mem=" + strconv.Itoa(g.Memory) + "M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw",
		"init=" + g.Init, "con=null", "con0=fd:0,fd:1", "quiet", "loglevel=4", "panic=1",
		"umid=" + g.Name + "-" + strconv.Itoa(os.Getpid()), "uml_dir=" + g.Dir,
		record.DirVariable + "=" + g.Dir,
	}
	if g.Network != nil {
		p = append(p, "vec0:transport=tap,ifname="+g.Capture+",depth=128,gro=1")
	}
	if g.Serial != "" {
		p = append(p, "ssl0=tty:"+g.Serial)
	}
	return append(p, g.Parameters...)
}

// listen extracts replies from the console output; the rest is logged.
func (g *Guest) listen(out io.Reader, log io.Writer) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		text, marked := strings.CutPrefix(strings.TrimSuffix(lines.Text(), "\r"), record.ReplyMark)
		var r record.Reply
		if !marked || json.Unmarshal([]byte(text), &r) != nil {
			fmt.Fprintln(log, lines.Text())
			continue
		}
		g.mu.Lock()
		to := g.waiting[r.ID]
		delete(g.waiting, r.ID)
		g.mu.Unlock()
		switch {
		case to != nil:
			to <- r
		case r.ID == 0:
			select {
			case g.boot <- r:
			default:
				fmt.Fprintln(log, lines.Text())
			}
		}
	}
}

// Do runs one command in the guest and returns its output.
func (g *Guest) Do(c record.Command) (string, error) {
	reply := make(chan record.Reply, 1)
	g.mu.Lock()
	g.id++
	c.ID = g.id
	g.waiting[c.ID] = reply
	line, err := json.Marshal(c)
	if err == nil {
		_, err = g.console.Write(append(line, '\n'))
	}
	g.mu.Unlock()
	if err != nil {
		return "", fmt.Errorf("vmlab: guest %s: %w", g.Name, err)
	}
	select {
	case r := <-reply:
		if r.Error != "" {
			return r.Output, fmt.Errorf("vmlab: guest %s: %s %s%v: %s", g.Name, c.Do, c.Name, c.Args, r.Error)
		}
		return r.Output, nil
	case <-g.ended:
		return "", g.failure(fmt.Sprintf("the kernel ended (%s)", g.outcome()))
	case <-time.After(commandTimeout):
		return "", g.failure(fmt.Sprintf("no reply to %s %s%v within %v", c.Do, c.Name, c.Args, commandTimeout))
	}
}

// Close switches the guest off.
func (g *Guest) Close() error {
	g.mu.Lock()
	_, err := fmt.Fprintf(g.console, `{"Do":%q}`+"\n", record.Poweroff)
	g.mu.Unlock()
	select {
	case <-g.ended:
		return nil
	case <-time.After(10 * time.Second):
	}
	// The guest's processes are in the kernel's process group.
	return errors.Join(err, syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL))
}
