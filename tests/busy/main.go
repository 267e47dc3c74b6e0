// Command busy runs a command as on a busy machine: beside processes that spin, and stopped as a whole for a moment at
// random times, as by a hypervisor or by SIGSTOP.
//
// Only the command and its descendants stop: they are in a control group of their own, whose freezer stops them at once,
// also those in network namespaces and other sessions. Kernels go on, so that a TCP timer fires while its process is stopped. The
// processes and the group end with the command.
//
// tests/busy/run.sh, which make busy runs, runs the tests that measure time this way.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"oneway.example/exporter/core/ctxtime"
)

// spin is the argument of a process that only spins.
const spin = "spin"

// load is what a command runs beside.
type load struct {
	// Spinners is the number of processes that spin.
	Spinners int
	// Every is the mean time between two stops, whose intervals are exponentially distributed. Stop is the duration of each.
	Every, Stop time.Duration
}

func main() {
	var l load
	flag.IntVar(&l.Spinners, "spinners", 3, "processes that spin")
	flag.DurationVar(&l.Every, "every", 5*time.Second, "mean time between two stops")
	flag.DurationVar(&l.Stop, "stop", 200*time.Millisecond, "duration of a stop")
	flag.Parse()
	if flag.Arg(0) == spin {
		for { //nolint:staticcheck // to use a processor is its purpose
		}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	stops, err := l.run(ctx, flag.Args())
	fmt.Printf("busy: %d processes span; the command was stopped %d times for %v\n", l.Spinners, stops, l.Stop)
	if status := (*exec.ExitError)(nil); errors.As(err, &status) && status.ExitCode() > 0 {
		os.Exit(status.ExitCode()) //nolint:gocritic // the process ends: nothing waits for a signal
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "busy:", err)
		os.Exit(2)
	}
}

// run runs a command to its end, or until ctx ends, and returns the number of stops.
func (l load) run(ctx context.Context, command []string) (stops int, err error) {
	if len(command) == 0 {
		return 0, errors.New("no command")
	}
	g, err := newGroup(fmt.Sprintf("oneway-busy-%d", os.Getpid()))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	spinning, quiet := context.WithCancel(ctx)
	defer quiet()
	for range l.Spinners {
		c := exec.CommandContext(spinning, "/proc/self/exe", spin)
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			return 0, err
		}
		defer func() { quiet(); _ = c.Wait() }() // killed
	}
	c := g.command(ctx, command)
	if err := c.Start(); err != nil {
		return 0, err
	}
	running, ended := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() {
		var err error
		stops, err = l.stopNowAndThen(running, g)
		stopped <- err
	}()
	err = c.Wait()
	ended()
	return stops, errors.Join(err, <-stopped)
}

// stopNowAndThen stops a group until ctx ends, and leaves it running.
func (l load) stopNowAndThen(ctx context.Context, g group) (stops int, err error) {
	for ctxtime.Sleep(ctx, time.Duration(rand.ExpFloat64()*float64(l.Every))) { // no condition: the times are random
		if err := g.freeze(); err != nil {
			return stops, errors.Join(err, g.thaw())
		}
		time.Sleep(l.Stop) // the duration of the stop is the purpose
		if err := g.thaw(); err != nil {
			return stops, err
		}
		stops++
	}
	return stops, nil
}
