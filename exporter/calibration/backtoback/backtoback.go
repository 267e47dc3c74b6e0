// Package backtoback measures what package calibration knows: it runs the real sender
// and the real reflector over a path whose delay is known.
//
// Three setups: over the loopback interface; over a veth pair in two network
// namespaces that it makes for itself (root); to a reflector at the other end of a
// cable. Two interfaces of one host joined by a cable are none of these: the kernel
// would send packets between its own addresses over loopback and not over the cable,
// and to move a user's interfaces into namespaces is not ours to do. Who wants that
// moves one and runs `oneway reflect --clock=none` in there: that is a peer which, as it
// knows nothing of its clock, is found to share it by its kernel (package hostid).
package backtoback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/hostport"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/reflector"
	"oneway.example/exporter/sample"
	wire "oneway.example/exporter/wire/stamp"
)

// Options say what to run.
type Options struct {
	// Setup is calibration.Loopback, Veth or Peer; Peer is the reflector's HOST:PORT
	// in the last.
	Setup, Peer string
	// Interface is the one to calibrate. Loopback and Peer find it themselves and
	// refuse another; of Veth it is the interface that the result shall be good for,
	// which must be a veth itself; empty: the pair's own.
	Interface string
	// Stamp are the sender's options.
	Stamp stamp.Options
	// Count is how many packets are sent, at least calibration.MinCount.
	Count uint64
	// TrueDelay is the known delay of one way.
	TrueDelay time.Duration
	// Trust asks for a calibration that may narrow bounds.
	Trust bool
}

// Result is a calibration and the report of the run it came from.
type Result struct {
	Record calibration.Record
	Report stamp.Report
}

// OptionError says which of Options is wrong and what would be right.
type OptionError struct{ Option, Problem string }

// Error is "<option> <problem>".
func (e *OptionError) Error() string { return e.Option + " " + e.Problem }

// path is a setup that is ready to be measured over.
type path struct {
	// stored is the interface that the calibration is for, driver what drives it.
	stored, driver string
	// at is where to send to; listen, where a reflector is to be run first.
	at     string
	listen netip.AddrPort // invalid: one runs there already
	// near and far run a function where the sender's and the reflector's sockets are.
	near, far func(func() error) error
	close     func()
}

// here is the namespace of the program.
func here(f func() error) error { return f() }

// Run measures. The clock and the pacer of env must be running. progress is called
// twice a second.
func Run(ctx context.Context, o Options, env probe.Env, progress func(stamp.Report)) (result Result, err error) {
	p, err := prepare(ctx, &o)
	if err != nil {
		return result, err
	}
	defer p.close()
	if p.listen.IsValid() {
		stop, at, err := reflect(ctx, p, &o, env)
		if err != nil {
			return result, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		p.at = at
	}
	want := sample.Kernel
	if o.Stamp.Hardware != "" {
		want = sample.Hardware
	}
	o.Stamp.MaxBound = 0
	collector := calibration.NewCollector(want, int(o.Count))
	err = p.near(func() error {
		prober, err := stamp.New().NewProber(env, probe.Target{Path: "calibration", Probe: "stamp", Peer: p.at}, o.Stamp)
		if err != nil {
			return err
		}
		prober.OnPacket = collector.Add
		result.Report, err = prober.Measure(ctx, o.Count, progress)
		return err
	})
	if ctx.Err() != nil {
		return result, fmt.Errorf("backtoback: interrupted: %w", context.Cause(ctx))
	}
	if err != nil {
		return result, err
	}
	result.Record, err = record(p, &o, want, result.Report, collector)
	// The sender, content with two good clocks, does not look whether they are one.
	result.Report.SharedClock = result.Record.SharedClock
	return result, err
}

func prepare(ctx context.Context, o *Options) (*path, error) {
	if o.Count < calibration.MinCount {
		return nil, &OptionError{"count", fmt.Sprintf("is %d; it must be at least %d", o.Count, calibration.MinCount)}
	}
	if o.Trust && o.Count < calibration.TrustCount {
		return nil, &OptionError{"count", fmt.Sprintf("is %d; trust needs at least %d", o.Count, calibration.TrustCount)}
	}
	switch o.Setup {
	case calibration.Loopback:
		return overLoopback(ctx, o)
	case calibration.Veth:
		if d := calibration.DriverOf(o.Interface); o.Interface != "" && d != "veth" {
			return nil, &OptionError{"interface", fmt.Sprintf("is %q with driver %q; a veth pair tells of a veth only", o.Interface, d)}
		}
		return overVeth(o)
	case calibration.Peer:
		return overCable(ctx, o)
	}
	return nil, &OptionError{"setup", fmt.Sprintf("is %q; it must be %q, %q or %q", o.Setup, calibration.Loopback, calibration.Veth, calibration.Peer)}
}

func overLoopback(ctx context.Context, o *Options) (*path, error) {
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	return ready(ctx, o, &path{listen: at}, netip.AddrPortFrom(at.Addr(), 1))
}

func overCable(ctx context.Context, o *Options) (*path, error) {
	peer, err := resolve(ctx, o)
	if err != nil {
		return nil, err
	}
	return ready(ctx, o, &path{at: peer.String()}, peer)
}

// resolve finds the peer's address. Nothing is sent to it.
func resolve(ctx context.Context, o *Options) (netip.AddrPort, error) {
	host, port, err := hostport.Split(o.Peer, wire.Port)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("backtoback: peer %q: %w", o.Peer, err)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("backtoback: peer %q: %w", o.Peer, err)
	}
	defer func() { _ = c.Close() }() // nothing was sent
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return at, fmt.Errorf("backtoback: peer %q: %w", o.Peer, err)
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), nil
}

// ready finds the interface that the packets will pass.
func ready(ctx context.Context, o *Options, p *path, peer netip.AddrPort) (*path, error) {
	var local netip.Addr
	if o.Stamp.Local != "" {
		var err error
		if local, err = netip.ParseAddr(o.Stamp.Local); err != nil {
			return nil, &OptionError{"local", fmt.Sprintf("is %q; it must be an address", o.Stamp.Local)}
		}
	}
	name, err := calibration.InterfaceTo(ctx, local, peer)
	if err != nil {
		return nil, err
	}
	if o.Interface != "" && o.Interface != name {
		return nil, &OptionError{"interface", fmt.Sprintf("is %q, but packets to %s pass %q", o.Interface, peer.Addr(), name)}
	}
	if h := o.Stamp.Hardware; h != "" && h != name {
		return nil, &OptionError{"hardware", fmt.Sprintf("is %q, but packets to %s pass %q", h, peer.Addr(), name)}
	}
	p.stored, p.driver = name, calibration.DriverOf(name)
	p.near, p.far, p.close = here, here, func() {}
	return p, nil
}

// reflect starts a reflector and returns its address; stop waits for its end.
func reflect(ctx context.Context, p *path, o *Options, env probe.Env) (stop func() error, at string, err error) {
	r, err := reflector.New(reflector.Options{
		Listen: []netip.AddrPort{p.listen}, RatePackets: -1, LossWait: o.Stamp.LossTimeout,
	}, reflector.Env{Log: env.Log, Sink: env.Sink, Clock: env.Clock})
	if err != nil {
		return nil, "", err
	}
	// It outlives the sender, which asks for its final counts.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- p.far(func() error { return r.Run(ctx) }) }()
	select {
	case err := <-ended:
		cancel()
		return nil, "", err
	case <-r.Started():
	}
	return func() error { cancel(); return <-ended }, r.Addrs()[0].String(), nil
}

// errForeign: only our reflector tells where each of its stamps came from.
var errForeign = errors.New("backtoback: calibration needs a oneway reflector at the other end; run `oneway reflect` there")

func record(p *path, o *Options, want sample.Origin, report stamp.Report, c *calibration.Collector) (calibration.Record, error) {
	if report.Reflector != "oneway" {
		return calibration.Record{}, errForeign
	}
	system := calibration.ThisSystem()
	r := calibration.Record{
		Interface: p.stored, Driver: p.driver, Host: system.Host, Kernel: system.Kernel,
		Date: time.Now().UTC().Truncate(time.Second), Setup: o.Setup, At: report.Peer,
		SharedClock: report.SharedClock || o.Setup != calibration.Peer,
		Origin:      want, PacketBytes: o.Stamp.Size, Interval: o.Stamp.Interval, TrueDelay: o.TrueDelay, Trusted: o.Trust,
	}
	var err error
	if r.Forward, r.Reverse, err = c.Result(o.TrueDelay); err != nil {
		return r, err
	}
	if err := r.Check(); err != nil {
		return r, fmt.Errorf("backtoback: not a usable calibration: %w", err)
	}
	return r, nil
}
