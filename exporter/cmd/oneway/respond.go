package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/control"
	"oneway.example/exporter/memlimit"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/responder"
	"oneway.example/exporter/sched"
)

const respondHelp = `Be the far end of heavy tests (saturation, matrix, trains), until interrupted.

An agent can have a responder of its own (the section responder of its configuration);
this command is one without an agent. Clients need a token, which "oneway token new"
makes, and the pin that is printed here, if there is no certificate that they trust.
Everything is opened by the client: control over TLS (TCP) and test traffic (UDP) come to
one port number.

Examples:
  oneway token new --file tokens --name berlin --out berlin.token --rate 20Mbit --duration 5m --per-day 10GB
  oneway respond --tokens-file tokens --state-dir /var/lib/oneway
  oneway respond --tokens-file tokens --listen 192.0.2.7:8620 --cert-file cert.pem --key-file key.pem
  oneway respond --tokens-file tokens --state-dir . --allow 192.0.2.0/24`

type respondFlags struct {
	listen, allow []string
	options       responder.Options
	clock         clockFlags
}

func respondCommand(app *kingpin.Application) {
	f := &respondFlags{}
	o := &f.options
	cmd := app.Command("respond", respondHelp)
	cmd.Flag("tokens-file", "Who may run tests, and how much.").Required().PlaceHolder("FILE").StringVar(&o.TokensFile)
	cmd.Flag("listen", "Address and port, TCP and UDP; repeatable.").Default(":8620").PlaceHolder("ADDR:PORT").StringsVar(&f.listen)
	cmd.Flag("state-dir", "Keeps the key that it makes for itself, and what tokens have used today.").PlaceHolder("DIR").StringVar(&o.StateDir)
	cmd.Flag("cert-file", "Certificate (PEM); without one, a key of its own.").PlaceHolder("FILE").StringVar(&o.CertFile)
	cmd.Flag("key-file", "The certificate's key (PEM).").PlaceHolder("FILE").StringVar(&o.KeyFile)
	cmd.Flag("client-ca-file", "Certificates (PEM) that sign those of clients.").PlaceHolder("FILE").StringVar(&o.ClientCAFile)
	cmd.Flag("allow", "Answer only sources of this prefix; repeatable.").PlaceHolder("CIDR").StringsVar(&f.allow)
	cmd.Flag("max-connections", "Control connections at one time.").Default("256").IntVar(&o.MaxConnections)
	cmd.Flag("max-sessions", "Authorised ones of them.").Default("64").IntVar(&o.MaxSessions)
	f.clock.register(cmd)
	cmd.Action(action(func() error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return f.run(ctx, os.Stdout)
	}))
}

// run responds until ctx ends, then prints what it did.
func (f *respondFlags) run(ctx context.Context, out io.Writer) error {
	if err := f.complete(); err != nil {
		return usageError{err}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	memlimit.Adopt(log)
	monitor, err := f.clock.monitor(metric.Discard{}, log)
	if err != nil {
		return err
	}
	links, err := sched.NewLinks(sched.LinksOptions{Log: log})
	if err != nil {
		return err
	}
	r, err := responder.New(f.options, responder.Env{
		Log: log, Sink: metric.Discard{}, Clock: clock.Widen(monitor, calibration.ModerationAt(f.options.Listen)), Links: links,
	})
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching := make(chan error, 1)
	go func() { watching <- monitor.Run(ctx) }()
	go announceResponder(ctx, out, r)
	err = r.Run(ctx)
	cancel()
	if err := errors.Join(err, <-watching); err != nil {
		return err
	}
	return printResponder(out, r.Status())
}

// complete turns the flags' words into options.
func (f *respondFlags) complete() error {
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
	if f.options.StateDir == "" && f.options.CertFile == "" {
		return errors.New("--state-dir is missing; without --cert-file it needs a directory for a key of its own")
	}
	return nil
}

// announceResponder prints the addresses and the pin once they are there.
func announceResponder(ctx context.Context, out io.Writer, r *responder.Responder) {
	select {
	case <-ctx.Done():
	case <-r.Started():
		for _, a := range r.Addrs() {
			fmt.Fprintf(out, "responding on tcp and udp %s\n", a)
		}
		fmt.Fprintf(out, "pin %s\n", r.Pin())
	}
}

// printResponder sums a run up.
func printResponder(out io.Writer, s responder.Status) error {
	fmt.Fprintf(out, "%d sessions, %d transfers, %d octets received, %d sent\n", s.Opened, s.Started, s.Received, s.Sent)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, reason := range control.Reasons() {
		if n := s.Refused[reason]; n > 0 {
			fmt.Fprintf(w, "  refused, %s\t%d\n", reason, n)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Ended)) {
		fmt.Fprintf(w, "  ended, %s\t%d\n", reason, s.Ended[reason])
	}
	return w.Flush()
}
