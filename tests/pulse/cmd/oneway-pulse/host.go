package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/tests/pulse"
	"oneway.example/tests/receiver"
)

// host is the simulated hardware and the programs that see it.
type host struct {
	log      *slog.Logger
	device   *pulse.Device      // nil: none
	receiver *receiver.Receiver // nil: none
	made     []string           // nodes

	mu       sync.Mutex
	settings settings
}

// open makes device and receiver.
func (h *host) open(o options) (err error) {
	if o.device != "" {
		if h.device, err = pulse.Create(o.device, h.settings.pulse, o.seed, h.log); err != nil {
			return err
		}
	}
	if o.serial == "" {
		return nil
	}
	if o.terminal {
		h.receiver, err = receiver.OpenPTY(h.settings.receiver)
	} else {
		fifo := o.serial + ".fifo"
		h.receiver, err = receiver.OpenFIFO(fifo, h.settings.receiver)
		h.made = append(h.made, fifo)
	}
	if err != nil {
		return err
	}
	_ = os.Remove(o.serial) // a link that a killed process has left
	h.made = append(h.made, o.serial)
	return os.Symlink(h.receiver.Path, o.serial)
}

func (h *host) close() {
	if h.receiver != nil {
		h.receiver.Close()
	}
	for _, path := range h.made {
		_ = os.Remove(path)
	}
	if h.device != nil {
		_ = h.device.Close()
	}
}

// endTimeout is how long a program may take to end after SIGTERM; then it is killed.
const endTimeout = 10 * time.Second

// run starts the programs in their order, waits until one has ended or ctx ends, and ends the others in the reverse order.
// It returns the error of the one that ended first.
func (h *host) run(ctx context.Context, commands [][]string) error {
	ended := make(chan error, len(commands))
	var stops []func()
	var err error
	for _, c := range commands {
		var stop func()
		if stop, err = h.start(c, ended); err != nil {
			break
		}
		stops = append(stops, stop)
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
		}
	}
	for i := range stops {
		stops[len(stops)-1-i]()
	}
	return err
}

// start starts one program; its end is sent to ended. stop ends it.
func (h *host) start(command []string, ended chan<- error) (stop func(), err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	start := (*exec.Cmd).Start
	if h.device != nil {
		start = h.device.Start
	}
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	done := make(chan struct{})
	go func() {
		err := cmd.Wait()
		if err == nil {
			err = errors.New("it has ended")
		}
		h.log.Info("Program ended", "program", command[0], "err", err)
		ended <- fmt.Errorf("%s: %w", command[0], err)
		close(done)
	}()
	return func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		select {
		case <-done:
		case <-time.After(endTimeout):
			_ = cmd.Process.Kill()
			<-done
		}
	}, nil
}
