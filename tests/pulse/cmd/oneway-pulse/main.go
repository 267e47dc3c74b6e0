// Command oneway-pulse is a GNSS receiver with a pulse for a host that has neither: it makes a PPS device (package pulse) and a
// receiver (package receiver), and starts programs that see both. It ends them together: when one ends, or by SIGTERM.
//
//	oneway-pulse -device /dev/pps0 -serial /dev/gnss0 -control 127.0.0.1:9863 -- chronyd -x -d -F 0 -- gpsd -N -n /dev/gnss0
//
// Each program begins with an argument "--". The settings (pulse.*, receiver.*) can be changed while it runs:
//
//	oneway-pulse -control 127.0.0.1:9863 -set 'pulse.stopped=true&receiver.fix=1'
//
// or by POST /set?pulse.stopped=true; GET /state returns them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"

	"golang.org/x/sys/unix"

	"oneway.example/tests/pulse"
	"oneway.example/tests/receiver"
)

// options are those of the command line that do not change.
type options struct {
	device, serial, control, set string
	terminal                     bool
	seed                         uint64
	commands                     [][]string
}

// settings are those that do.
type settings struct {
	pulse    pulse.Settings
	receiver receiver.Settings
}

func (s *settings) flags(f *flag.FlagSet) {
	s.pulse.Flags(f)
	s.receiver.Flags(f)
}

func main() {
	pulse.Shim()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "oneway-pulse:", err)
		os.Exit(1)
	}
}

func run() error {
	o, s, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.set != "" {
		return send(o.control, o.set)
	}
	if len(o.commands) == 0 {
		return errors.New("no program: want -- and a program")
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	h := host{settings: s, log: log}
	defer h.close()
	if err := h.open(o); err != nil {
		return err
	}
	if o.control != "" {
		listener, err := h.listen(o.control)
		if err != nil {
			return err
		}
		defer func() { _ = listener.Close() }() // it is only accepted from
	}
	return h.run(ctx, o.commands)
}

// parse reads the arguments: flags, then programs, each after "--".
func parse(arguments []string) (o options, s settings, err error) {
	s.receiver = receiver.Default()
	f := flag.NewFlagSet("oneway-pulse", flag.ContinueOnError)
	f.StringVar(&o.device, "device", "", "path of the PPS device to make; empty: none")
	f.StringVar(&o.serial, "serial", "", "path of the receiver to make; empty: none")
	f.BoolVar(&o.terminal, "terminal", false, "the receiver is a pty, to which gpsd can write but whose time it does not export; otherwise a FIFO")
	f.StringVar(&o.control, "control", "", "address that the settings are changed at: HOST:PORT, or the path of a socket")
	f.StringVar(&o.set, "set", "", "change settings of the one that runs at -control, such as pulse.offset=3ms&receiver.fix=1, and exit")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the pulse's jitter")
	s.flags(f)
	begin := slices.Index(arguments, "--")
	if begin < 0 {
		begin = len(arguments)
	}
	if err := f.Parse(arguments[:begin]); err != nil {
		return o, s, err
	}
	if f.NArg() > 0 {
		return o, s, fmt.Errorf("argument %q: want a program after --", f.Arg(0))
	}
	for rest := arguments[begin:]; len(rest) > 0; {
		rest = rest[1:]
		end := slices.Index(rest, "--")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return o, s, errors.New("no program after --")
		}
		o.commands, rest = append(o.commands, rest[:end]), rest[end:]
	}
	return o, s, nil
}
