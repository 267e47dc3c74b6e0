package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/keyfile"
	"oneway.example/exporter/memlimit"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/reflector"
	"oneway.example/exporter/wire/stamp"
)

const reflectHelp = `Answer STAMP (RFC 8762) and TWAMP-Light test packets, until interrupted.

An agent can have a reflector of its own (the section reflector of its configuration);
this command is one without an agent. It needs no root but for ports below 1024 (or the
capability CAP_NET_BIND_SERVICE).

Examples:
  oneway reflect
  oneway reflect --listen 192.0.2.7:8620 --listen [2001:db8::7]:8620
  oneway reflect --key-file /etc/oneway/key --require-key --allow 192.0.2.0/24`

type reflectFlags struct {
	listen, allow []string
	keyFile       string
	options       reflector.Options
	clock         clockFlags
}

func reflectCommand(app *kingpin.Application) {
	f := &reflectFlags{}
	o := &f.options
	cmd := app.Command("reflect", reflectHelp)
	cmd.Flag("listen", "Address and port to answer on; repeatable.").Default(":862").PlaceHolder("ADDR:PORT").StringsVar(&f.listen)
	cmd.Flag("allow", "Answer only sources of this prefix; repeatable.").PlaceHolder("CIDR").StringsVar(&f.allow)
	cmd.Flag("key-file", "File with shared secrets, one a line; all are accepted.").StringVar(&f.keyFile)
	cmd.Flag("require-key", "Refuse what is not authenticated.").BoolVar(&o.RequireKey)
	cmd.Flag("stateless", "Copy the question's number; keep no sessions.").BoolVar(&o.Stateless)
	cmd.Flag("rate-limit", "Packets a second answered to one source (/32 or /64); -1: no limit.").Default("20000").IntVar(&o.RatePackets)
	cmd.Flag("max-sessions", "Sessions remembered at the most; fewer, where memory is limited.").Default("65536").IntVar(&o.MaxSessions)
	cmd.Flag("session-expiry", "How long a silent session is remembered.").Default("15m").DurationVar(&o.Expiry)
	cmd.Flag("hardware", "Use the time stamps of this interface's card.").PlaceHolder("IFACE").StringVar(&o.Hardware)
	f.clock.register(cmd)
	cmd.Action(action(func() error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return f.run(ctx, os.Stdout)
	}))
}

// run answers until ctx ends, then prints what it did.
func (f *reflectFlags) run(ctx context.Context, out io.Writer) error {
	if err := f.complete(); err != nil {
		return usageError{err}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	memlimit.Adopt(log)
	monitor, err := f.clock.monitor(metric.Discard{}, log)
	if err != nil {
		return err
	}
	r, err := reflector.New(f.options, reflector.Env{
		Log: log, Sink: metric.Discard{}, Clock: clock.Widen(monitor, calibration.ModerationAt(f.options.Listen)),
	})
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching := make(chan error, 1)
	go func() { watching <- monitor.Run(ctx) }()
	go announce(ctx, out, r)
	err = r.Run(ctx)
	cancel()
	if err := errors.Join(err, <-watching); err != nil {
		return err
	}
	return printAnswers(out, r.Stats())
}

// complete turns the flags' words into options.
func (f *reflectFlags) complete() error {
	for _, text := range f.listen {
		addrs, err := parseListen(text)
		if err != nil {
			return err
		}
		f.options.Listen = append(f.options.Listen, addrs...)
	}
	for _, text := range f.allow {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--allow is %q; it must be a prefix such as 192.0.2.0/24", text)
		}
		f.options.Allow = append(f.options.Allow, p)
	}
	if f.keyFile == "" {
		return nil
	}
	secrets, err := keyfile.Load(f.keyFile)
	if err != nil {
		return fmt.Errorf("--key-file: %w", err)
	}
	for _, s := range secrets {
		f.options.Keys = append(f.options.Keys, stamp.NewKey(s))
	}
	return nil
}

// parseListen reads ADDR:PORT; without an address it means both families.
func parseListen(text string) ([]netip.AddrPort, error) {
	if port, all := strings.CutPrefix(text, ":"); all {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			return []netip.AddrPort{
				netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(n)), netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(n)),
			}, nil
		}
	} else if a, err := netip.ParseAddrPort(text); err == nil {
		return []netip.AddrPort{a}, nil
	}
	return nil, fmt.Errorf("--listen is %q; it must be ADDR:PORT, such as :862, 192.0.2.7:862 or [2001:db8::7]:862", text)
}

// announce prints the addresses once they are open.
func announce(ctx context.Context, out io.Writer, r *reflector.Reflector) {
	select {
	case <-ctx.Done():
	case <-r.Started():
		for _, a := range r.Addrs() {
			fmt.Fprintf(out, "answering on udp %s\n", a)
		}
	}
}

// printAnswers sums a run up.
func printAnswers(out io.Writer, s reflector.Stats) error {
	fmt.Fprintf(out, "%d packets in %v, %d answered\n", s.Packets(), s.Running.Round(time.Second), s.Answered())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, n := range s.Results {
		if n > 0 {
			fmt.Fprintf(w, "  %s\t%d\n", reflector.Result(i), n)
		}
	}
	if s.SocketDrops > 0 {
		fmt.Fprintf(w, "  dropped by the kernel, socket buffer full\t%d\n", s.SocketDrops)
	}
	return w.Flush()
}
