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
	"slices"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/keyfile"
	"oneway.example/exporter/link"
	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/loadserver"
	"oneway.example/exporter/memlimit"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/option"
	"oneway.example/exporter/reflector"
	"oneway.example/exporter/traffictypes"
	"oneway.example/exporter/wire/stamp"
)

// serveFlags are those of the commands that reply other hosts without an agent.
type serveFlags struct {
	listen, allow []string
	clock         clockFlags
}

func (f *serveFlags) register(cmd *kingpin.CmdClause, listenHelp, listen string) {
	cmd.Flag("listen", listenHelp).Default(listen).PlaceHolder("ADDR:PORT").StringsVar(&f.listen)
	cmd.Flag("allow", "Answer only sources of this prefix; repeatable.").PlaceHolder("CIDR").StringsVar(&f.allow)
	f.clock.register(cmd)
}

// addresses are those to listen on, and the sources that are answered.
func (f *serveFlags) addresses() (listen []netip.AddrPort, allow []netip.Prefix, err error) {
	for _, text := range f.listen {
		addrs, err := parseListen(text)
		if err != nil {
			return nil, nil, err
		}
		listen = append(listen, addrs...)
	}
	for _, text := range f.allow {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--allow is %q; it must be a prefix such as 192.0.2.0/24", text)
		}
		allow = append(allow, p)
	}
	return listen, allow, nil
}

// parseListen reads ADDR:PORT; without an address it means both families.
func parseListen(text string) ([]netip.AddrPort, error) {
	var l option.Listen
	if l.UnmarshalText([]byte(text)) != nil {
		return nil, fmt.Errorf("--listen is %q; it must be ADDR:PORT, such as :862, 192.0.2.7:862 or [2001:db8::7]:862", text)
	}
	return l.Addrs(), nil
}

// server is a reflector or a load server.
type server interface {
	Run(ctx context.Context) error
	Started() <-chan struct{}
}

// serve runs what open makes until ctx ends, and calls announce once its sockets are open. An
// option that cannot be is the user's mistake.
func (f *serveFlags) serve(ctx context.Context, listen []netip.AddrPort, open func(*slog.Logger, clock.Monitor) (server, error), announce func()) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	memlimit.Adopt(log)
	monitor, err := f.clock.monitor(metric.Discard{}, log)
	if err != nil {
		return err
	}
	s, err := open(log, clock.Widen(monitor, calibration.ModerationAt(listen)))
	if err != nil {
		return usageError{asUsage(err)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching := make(chan error, 1)
	go func() { watching <- monitor.Run(ctx) }()
	go func() {
		select {
		case <-ctx.Done():
		case <-s.Started():
			announce()
		}
	}()
	err = s.Run(ctx)
	cancel()
	return errors.Join(err, <-watching)
}

const reflectHelp = `Answer STAMP (RFC 8762) and TWAMP-Light test packets, until interrupted.

An agent can have a reflector of its own (the section reflector of its configuration);
this command is one without an agent. It needs no root but for ports below 1024 (or the
capability CAP_NET_BIND_SERVICE).

Examples:
  oneway reflect
  oneway reflect --listen 192.0.2.7:8620 --listen [2001:db8::7]:8620
  oneway reflect --key-file /etc/oneway/key --require-key --allow 192.0.2.0/24`

type reflectFlags struct {
	serveFlags
	keyFile string
	options reflector.Options
}

func reflectCommand(app *kingpin.Application) {
	f := &reflectFlags{}
	o := &f.options
	cmd := app.Command("reflect", reflectHelp)
	f.register(cmd, "Address and port to answer on; repeatable.", ":862")
	cmd.Flag("key-file", "File with shared secrets, one a line; all are accepted.").StringVar(&f.keyFile)
	cmd.Flag("require-key", "Refuse what is not authenticated.").BoolVar(&o.RequireKey)
	cmd.Flag("stateless", "Copy the request's number; keep no sessions.").BoolVar(&o.Stateless)
	cmd.Flag("rate-limit", "Packets a second answered to one source (/32 or /64); -1: no limit.").Default("20000").IntVar(&o.RatePackets)
	cmd.Flag("max-sessions", "Sessions remembered at the most; fewer, where memory is limited.").Default("65536").IntVar(&o.MaxSessions)
	cmd.Flag("session-expiry", "How long a silent session is remembered.").Default("15m").DurationVar(&o.Expiry)
	cmd.Flag("hardware", "Use the time stamps of this interface's card.").PlaceHolder("IFACE").StringVar(&o.Hardware)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout) }))
}

// run answers until ctx ends, then prints what it did.
func (f *reflectFlags) run(ctx context.Context, out io.Writer) (err error) {
	o := f.options
	if o.Listen, o.Allow, err = f.addresses(); err != nil {
		return usageError{err}
	}
	if f.keyFile != "" {
		secrets, err := keyfile.Load(f.keyFile)
		if err != nil {
			return usageError{fmt.Errorf("--key-file: %w", err)}
		}
		for _, s := range secrets {
			o.Keys = append(o.Keys, stamp.NewKey(s))
		}
	}
	var r *reflector.Reflector
	if err := f.serve(ctx, o.Listen, func(log *slog.Logger, c clock.Monitor) (server, error) {
		r, err = reflector.New(o, reflector.Env{Log: log, Sink: metric.Discard{}, Clock: c})
		return r, err
	}, func() {
		for _, a := range r.Addrs() {
			fmt.Fprintf(out, "answering on udp %s\n", a)
		}
	}); err != nil {
		return err
	}
	return printReplies(out, r.Stats())
}

// printReplies sums a run up.
func printReplies(out io.Writer, s reflector.Stats) error {
	t := newTable(out, "%d packets in %v, %d answered\n", s.Packets(), s.Running.Round(time.Second), s.Answered())
	for i, n := range s.Results {
		t.count(reflector.Result(i).String(), n)
	}
	t.count("dropped by the kernel, socket buffer full", s.SocketDrops)
	return t.w.Flush()
}

const respondHelp = `Be the remote end of load tests (saturation, size sweep, trains), until interrupted.

An agent can have a load server of its own (the section load_server of its configuration);
this command is one without an agent. Clients need a token, which "oneway token new"
makes, and the pin that is printed here, if there is no certificate that they trust.
Everything is opened by the client: control over TLS (TCP) and test traffic (UDP) come to
one port number.

Examples:
  oneway token new --file tokens --name berlin --out berlin.token --rate 20Mbit --duration 5m --per-day 10GB
  oneway load-server --tokens-file tokens --state-dir /var/lib/oneway
  oneway load-server --tokens-file tokens --listen 192.0.2.7:8620 --cert-file cert.pem --key-file key.pem
  oneway load-server --tokens-file tokens --state-dir . --allow 192.0.2.0/24`

type respondFlags struct {
	serveFlags
	options loadserver.Options
}

func respondCommand(app *kingpin.Application) {
	f := &respondFlags{}
	o := &f.options
	cmd := app.Command("load-server", respondHelp)
	f.register(cmd, "Address and port, TCP and UDP; repeatable.", ":8620")
	cmd.Flag("tokens-file", "Who may run tests, and how much.").Required().PlaceHolder("FILE").StringVar(&o.TokensFile)
	cmd.Flag("state-dir", "Keeps the key that it makes for itself, and what tokens have used today.").PlaceHolder("DIR").StringVar(&o.StateDir)
	cmd.Flag("cert-file", "Certificate (PEM); without one, a key of its own.").PlaceHolder("FILE").StringVar(&o.CertFile)
	cmd.Flag("key-file", "The certificate's key (PEM).").PlaceHolder("FILE").StringVar(&o.KeyFile)
	cmd.Flag("client-ca-file", "Certificates (PEM) that sign those of clients.").PlaceHolder("FILE").StringVar(&o.ClientCAFile)
	cmd.Flag("ports", "Ports for further TCP sockets of a test, none of them but while it runs.").Default("8621-8640").PlaceHolder("FIRST-LAST").SetValue(textFlag{"ports", &o.Ports})
	cmd.Flag("max-connections", "Control connections at one time.").Default("256").IntVar(&o.MaxConnections)
	cmd.Flag("max-sessions", "Authorized ones of them.").Default("64").IntVar(&o.MaxSessions)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout) }))
}

// run responds until ctx ends, then prints what it did.
func (f *respondFlags) run(ctx context.Context, out io.Writer) (err error) {
	o := f.options
	if o.Listen, o.Allow, err = f.addresses(); err != nil {
		return usageError{err}
	}
	if o.StateDir == "" && o.CertFile == "" {
		return usageError{errors.New("--state-dir is missing; without --cert-file it needs a directory for a key of its own")}
	}
	var r *loadserver.LoadServer
	if err := f.serve(ctx, o.Listen, func(log *slog.Logger, c clock.Monitor) (server, error) {
		r, err = loadserver.New(o, loadserver.Env{Log: log, Sink: metric.Discard{}, Clock: c, Links: link.NewTable(nil), Traffic: traffictypes.All(), Version: version.Version})
		return r, err
	}, func() {
		for _, a := range r.Addrs() {
			fmt.Fprintf(out, "responding on tcp and udp %s\n", a)
		}
		fmt.Fprintf(out, "pin %s\n", r.Pin())
	}); err != nil {
		return err
	}
	return printLoadServer(out, r.Status())
}

// printLoadServer sums a run up.
func printLoadServer(out io.Writer, s loadserver.Status) error {
	t := newTable(out, "%d sessions, %d transfers, %d bytes received, %d sent\n", s.Opened, s.Started, s.Received, s.Sent)
	for _, reason := range loadcontrol.Reasons() {
		t.count("refused, "+string(reason), s.Refused[reason])
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Ended)) {
		t.count("ended, "+reason, s.Ended[reason])
	}
	return t.w.Flush()
}
