package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

// console does what the host says.
type console struct {
	boot record.Boot

	reply sync.Mutex // of whole lines

	mu        sync.Mutex
	processes map[string]*process
	feeders   map[string]*feeder
}

// process is one that was started; done is closed when it has ended.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func newConsole(b record.Boot) *console {
	return &console{boot: b, processes: map[string]*process{}, feeders: map[string]*feeder{}}
}

// serve reads commands until the console ends; each runs beside the others.
func (c *console) serve(in *os.File, out io.Writer) error {
	if err := plain(in); err != nil {
		return err
	}
	c.respond(out, record.Reply{})
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var cmd record.Command
		if err := json.Unmarshal(lines.Bytes(), &cmd); err != nil {
			c.respond(out, record.Reply{Error: err.Error()})
			continue
		}
		if cmd.Do == record.Poweroff {
			return errPoweroff
		}
		go func() {
			output, err := c.do(cmd)
			r := record.Reply{ID: cmd.ID, Output: output}
			if err != nil {
				r.Error = err.Error()
			}
			c.respond(out, r)
		}()
	}
	return errors.Join(errors.New("the console ended"), lines.Err())
}

var errPoweroff = errors.New("power off")

func (c *console) respond(out io.Writer, r record.Reply) {
	line, err := json.Marshal(r)
	if err != nil {
		line = []byte(`{"Error":"a reply that is no JSON"}`)
	}
	c.reply.Lock()
	defer c.reply.Unlock()
	fmt.Fprintf(out, "\n%s%s\n", record.ReplyMark, line)
}

// plain stops the console from echoing and from rewriting.
func plain(f *os.File) error {
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG
	t.Oflag &^= unix.OPOST
	t.Iflag &^= unix.ICRNL | unix.IXON
	return unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
}

func (c *console) do(cmd record.Command) (output string, err error) {
	switch cmd.Do {
	case record.Run:
		run := exec.Command(cmd.Args[0], cmd.Args[1:]...)
		run.Dir = record.Dir
		out, err := run.CombinedOutput()
		return string(out), err
	case record.Start:
		return "", c.start(cmd.Name, cmd.Args)
	case record.Signal:
		return "", c.with(cmd.Name, func(p *process) error { return p.cmd.Process.Signal(syscall.Signal(cmd.By)) })
	case record.Wait:
		return "", c.with(cmd.Name, func(p *process) error { <-p.done; return nil })
	case record.Step:
		return "", step(time.Duration(cmd.By))
	case record.Set:
		counter, now, _ := truth.Read()
		return "", step(c.boot.Line.At(counter).Sub(now) + time.Duration(cmd.By))
	case record.Rate:
		return "", setRate(cmd.By)
	case record.FeedOn:
		return "", c.feed(*cmd.Feed)
	case record.FeedOff:
		c.unfeed(cmd.Name)
		return "", nil
	case record.First:
		return "", first(cmd.Args, cmd.By != 0)
	case record.Load:
		return "", load(cmd.Args)
	case record.Flush:
		time.Sleep(2 * flushEvery)
		return "", nil
	}
	return "", fmt.Errorf("no command %q", cmd.Do)
}

func (c *console) start(name string, args []string) error {
	log, err := os.OpenFile(filepath.Join(record.Dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = record.Dir, log, log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended is in its log
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes[name] = p
	return nil
}

func (c *console) with(name string, f func(*process) error) error {
	c.mu.Lock()
	p := c.processes[name]
	c.mu.Unlock()
	if p == nil {
		return fmt.Errorf("no process %q was started", name)
	}
	return f(p)
}

// step moves the clock.
func step(by time.Duration) error {
	ts := unix.NsecToTimespec(int64(instant.Now().Add(by)))
	return unix.ClockSettime(unix.CLOCK_REALTIME, &ts)
}

// nominalTick is USER_HZ's period in microseconds.
const nominalTick = 10_000

// setRate makes the clock fast by so many parts per billion, as a crystal is.
func setRate(ppb int64) error {
	const scaled = 65536 // struct timex: freq is in ppm with 16 fractional bits
	// chronyd keeps the rest of large frequencies in the length of the tick.
	t := unix.Timex{Modes: unix.ADJ_FREQUENCY | unix.ADJ_TICK, Freq: ppb * scaled / 1000, Tick: nominalTick}
	_, err := unix.Adjtimex(&t)
	return err
}
