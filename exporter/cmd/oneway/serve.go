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
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/common/version"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/memlimit"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/reflector"
)

// serveFlags are the common flags of the servers without an agent: reflector and load server.
type serveFlags struct {
	listen, allow []string
	clock         clockFlags
}

// register adds the flags. keys are the keys of the agent's section of this server.
func (f *serveFlags) register(cmd *kingpin.CmdClause, keys []option.Description, port uint16) {
	listen := option.Listen{Port: port}.String()
	cmd.Flag("listen", keyOf(keys, "listen").Doc(flagOf)+" Repeatable. Default: "+listen+".").Default(listen).PlaceHolder("ADDR:PORT").StringsVar(&f.listen)
	allow := keyOf(keys, "allow")
	cmd.Flag("allow", allow.Doc(flagOf)+" A prefix; repeatable. Default: "+allow.Meaning(flagOf)+".").PlaceHolder("CIDR").StringsVar(&f.allow)
	f.clock.register(cmd)
}

// sectionKeys are the descriptions of the keys of a section of the agent's configuration.
func sectionKeys(section string) []option.Description {
	return option.All(agent.Sections(nil, nil, nil)[section]...)
}

// keyOf is the description of a key.
func keyOf(keys []option.Description, key string) option.Description {
	return keys[slices.IndexFunc(keys, func(d option.Description) bool { return d.Key == key })]
}

// addresses are those to listen on, and the accepted sources.
func (f *serveFlags) addresses() (listen []netip.AddrPort, allow []netip.Prefix, err error) {
	for _, text := range f.listen {
		addrs, err := parseListen(text)
		if err != nil {
			return nil, nil, err
		}
		listen = append(listen, addrs...)
	}
	for _, text := range f.allow {
		p, err := hostport.Network(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--allow is %q; %w", text, err)
		}
		allow = append(allow, p)
	}
	return listen, allow, nil
}

// parseListen parses ADDR:PORT; without an address it means both families.
func parseListen(text string) ([]netip.AddrPort, error) {
	var l option.Listen
	if err := l.UnmarshalText([]byte(text)); err != nil {
		return nil, fmt.Errorf("--listen is %q; %w", text, err)
	}
	return l.Addrs(), nil
}

// server is a reflector or a load server.
type server interface {
	Run(ctx context.Context) error
	Started() <-chan struct{}
}

// serve runs the server that open makes until ctx ends, and calls announce when its sockets are open. An invalid option
// is a usage error.
func (f *serveFlags) serve(ctx context.Context, listen []netip.AddrPort, open func(*slog.Logger, clock.Monitor) (server, error), announce func()) error {
	log, flush := newLog(os.Stderr, func(out io.Writer) slog.Handler {
		return slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn})
	})
	defer flush()
	memlimit.SetFromCgroups(log)
	monitor, err := f.clock.monitor(metric.Discard{}, log)
	if err != nil {
		return err
	}
	s, err := open(log, clock.Widen(monitor, calibration.ModerationAt(listen)))
	if err != nil {
		return usageError{asUsage(err, flagOf)}
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
			agent.SystemdNotify(log)(daemon.SdNotifyReady)
		}
	}()
	err = s.Run(ctx)
	cancel()
	return errors.Join(err, <-watching)
}

const reflectHelp = `Reflect STAMP (RFC 8762) and TWAMP-Light test packets.

An agent can run a reflector of its own (section reflector of its configuration); this
command runs a reflector without an agent. It needs root (or CAP_NET_BIND_SERVICE) only
for ports below 1024.

Examples:
  oneway reflect
  oneway reflect --listen 192.0.2.7:9000 --listen [2001:db8::7]:9000
  oneway reflect --key-file /etc/oneway/key --require-key --allow 192.0.2.0/24

Exit status: 0 ended by a signal, 1 failure, 2 wrong usage.`

type reflectFlags struct {
	serveFlags
	keyFile string
	options reflector.Options
}

func reflectCommand(app *kingpin.Application) {
	f := &reflectFlags{}
	o := &f.options
	cmd := app.Command("reflect", reflectHelp)
	keys := sectionKeys("reflector")
	f.register(cmd, keys, stampfmt.Port)
	cmd.Flag("key-file", keyOf(keys, "key_file").Doc(flagOf)).PlaceHolder("FILE").StringVar(&f.keyFile)
	rate := keyOf(keys, reflector.RateLimitKey)
	cmd.Flag("rate-limit", rate.Doc(flagOf)+" "+rate.Range()+"; no limit: --rate-limit=-1.").Default(option.String(rate.Default())).IntVar(&o.RatePackets)
	option.SetDefaults(o)
	o.Given = registerOptions(cmd, flagOf, o, o, "allow")
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout) }))
}

// run reflects until ctx ends, then prints a summary.
func (f *reflectFlags) run(ctx context.Context, out io.Writer) (err error) {
	o := f.options
	if o.Listen, o.Allow, err = f.addresses(); err != nil {
		return usageError{err}
	}
	if o.RatePackets != -1 && o.Given != nil { // without a command line zero is the default
		rate := keyOf(sectionKeys("reflector"), reflector.RateLimitKey)
		*rate.Pointer().(*int) = o.RatePackets
		if err, wrong := errors.AsType[*option.Error](rate.Check()); wrong {
			return usageError{fmt.Errorf("--rate-limit %s, or -1", err.Problem)}
		}
	}
	if f.keyFile != "" {
		secrets, err := keyfile.Load(f.keyFile)
		if err != nil {
			return usageError{fmt.Errorf("--key-file cannot be used: %w", err)}
		}
		for _, s := range secrets {
			o.Keys = append(o.Keys, stampfmt.NewKey(s))
		}
	}
	var r *reflector.Reflector
	if err := f.serve(ctx, o.Listen, func(log *slog.Logger, c clock.Monitor) (server, error) {
		r, err = reflector.New(o, reflector.Env{Log: log, Sink: metric.Discard{}, Clock: c})
		return r, err
	}, func() {
		for _, a := range r.Addrs() {
			fmt.Fprintf(out, "listening on udp %s\n", a)
		}
	}); err != nil {
		return err
	}
	return printReplies(out, r.Stats())
}

// printReplies prints the counts of a run.
func printReplies(out io.Writer, s reflector.Stats) error {
	t := newTable(out, "%s in %v, %d replied\n", unit.Counted(s.Packets(), "packet", "packets"), s.Running.Round(time.Second), s.Answered())
	for i, n := range s.Results {
		t.count(reflector.Result(i).String(), n)
	}
	t.count("dropped by the kernel, socket buffer full", s.SocketDrops)
	return t.end()
}

const loadServerHelp = `Run the remote end of load tests until interrupted.

An agent can run a load server of its own (section load_server of its configuration);
this command runs a load server without an agent. Clients need a token, which
"oneway token new" makes, and the pin that this command prints unless they trust its
certificate. Clients open all connections: the control connection (TLS over TCP) and the
streams of UDP use the same port number. Tests of TCP, and the test packets during a load
(UDP), use --ports: open these in a firewall, too, for TCP and UDP.

Examples:
  oneway token new --file tokens --name berlin --out berlin.token --rate 20Mbit --duration 5m --per-day 10GB
  oneway load-server --tokens-file tokens --state-dir /var/lib/oneway
  oneway load-server --tokens-file tokens --listen 192.0.2.7:9000 --cert-file cert.pem --key-file key.pem
  oneway load-server --tokens-file tokens --state-dir . --allow 192.0.2.0/24

Exit status: 0 ended by a signal, 1 failure, 2 wrong usage.`

type loadServerFlags struct {
	serveFlags
	options loadserver.Options
}

func loadServerCommand(app *kingpin.Application) {
	f := &loadServerFlags{}
	o := &f.options
	cmd := app.Command("load-server", loadServerHelp)
	f.register(cmd, sectionKeys("load_server"), loadcontrol.DefaultPort)
	cmd.Flag("state-dir", "Directory of the data that must survive a restart: "+loadserver.StateDoc+".").PlaceHolder("DIR").StringVar(&o.StateDir)
	option.SetDefaults(o)
	o.Given = registerOptions(cmd, flagOf, o, o, "allow", "link")
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout) }))
}

// run serves until ctx ends, then prints a summary.
func (f *loadServerFlags) run(ctx context.Context, out io.Writer) (err error) {
	o := f.options
	if o.Listen, o.Allow, err = f.addresses(); err != nil {
		return usageError{err}
	}
	if o.Given != nil && !o.Given("max_sessions") {
		o.MaxSessions = 0 // its default depends on the number of connections
	}
	if o.StateDir == "" && o.CertFile == "" {
		return usageError{errors.New("--state-dir is missing; without --cert-file the load server needs a directory for its key")}
	}
	var r *loadserver.LoadServer
	if err := f.serve(ctx, o.Listen, func(log *slog.Logger, c clock.Monitor) (server, error) {
		r, err = loadserver.New(o, loadserver.Env{Log: log, Sink: metric.Discard{}, Clock: c, Links: link.NewTable(nil), Traffic: traffictypes.All(), Version: version.Version})
		return r, err
	}, func() {
		for _, a := range r.Addrs() {
			fmt.Fprintf(out, "listening on tcp and udp %s\n", a)
		}
		fmt.Fprintf(out, "pin %s\n", r.Pin())
	}); err != nil {
		return err
	}
	return printLoadServer(out, r.Status())
}

// printLoadServer prints the counts of a run.
func printLoadServer(out io.Writer, s loadserver.Status) error {
	t := newTable(out, "%d sessions, %d transfers, %d bytes received, %d sent\n", s.Opened, s.Started, s.Received, s.Sent)
	for _, reason := range loadcontrol.Reasons() {
		t.count("refused, "+string(reason), s.Refused[reason])
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Ended)) {
		t.count("ended, "+reason, s.Ended[reason])
	}
	t.lay()
	return t.flush()
}
