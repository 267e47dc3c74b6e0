// Package backtoback measures the data of package calibration: it runs the real sender and the real reflector over a path of
// known delay.
//
// There are three setups: over the loopback interface; over a veth pair in two network namespaces that it creates (root);
// to a reflector at the other end of a cable. A cable between two interfaces of one host is not supported: the kernel
// sends packets between its own addresses over loopback, and the package does not move a user's interfaces into
// namespaces. A user can move one interface into a namespace and run `oneway reflect --clock=none` in it: that is a peer
// without clock information, whose shared clock is detected by its kernel (package hostid).
package backtoback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/reflector"
)

// Options configure a run. Errors are of type *option.Error.
type Options struct {
	// Setup is loopback, veth or peer.
	Setup string `yaml:"setup"`
	// Peer is the reflector's HOST:PORT for setup peer.
	Peer string
	// Interface is the interface to calibrate. The setups loopback and peer determine it and reject another one; for veth it is the
	// veth interface that the result applies to; empty: the created pair.
	Interface string `yaml:"interface"`
	// Stamp are the sender's options.
	Stamp stamp.Options
	// Count is the number of packets.
	Count uint64 `yaml:"count"`
	// TrueDelay is the known one-way delay.
	TrueDelay time.Duration `yaml:"true_delay"`
	// Trust requests a calibration that may narrow bounds.
	Trust bool `yaml:"trust"`
}

// Limits of Options.
const (
	maxCount     = 1_000_000
	maxTrueDelay = time.Second
)

// Describe returns the descriptions of the options besides Stamp. Describe of stamp.Options has the others.
func (o *Options) Describe() []option.Description {
	return []option.Description{
		option.Text(&o.Interface, "Interface to calibrate. With {veth}: interface to store the result for.").Unset("the interface of the path").WithPlaceholder("IFACE"),
		option.Number(&o.TrueDelay, 0, 0, maxTrueDelay, "Known one-way delay: propagation delay of the cable plus packet size divided by rate."),
		option.Number(&o.Count, 5000, calibration.MinCount, maxCount, "Test packets to send.").Checked(o.checkCount),
		option.Switch(&o.Trust, false, fmt.Sprintf("Let the agent narrow error bounds: it uses the largest error of this calibration instead of %s.", unit.Duration(bound.KernelError))),
	}
}

func (o *Options) checkCount(key string) error {
	if o.Trust && o.Count >= calibration.MinCount && o.Count < calibration.MinTrustedCount {
		return option.Errorf(key, "is %d; trust needs at least %d", o.Count, calibration.MinTrustedCount)
	}
	return option.Between(key, o.Count, calibration.MinCount, maxCount)
}

// Result is a calibration and the report of its run.
type Result struct {
	Record calibration.Record
	Report stamp.Report
}

// path is a prepared setup.
type path struct {
	// stored is the interface that the calibration applies to, driver its driver.
	stored, driver string
	// at is the address of the reflector; listen is where Run must start a reflector first.
	at     string
	listen netip.AddrPort // invalid: a reflector runs already
	// inLocal and remote run a function in the network namespace of the sender's and the reflector's sockets.
	inLocal, inRemote func(func() error) error
	close             func()
}

// Run measures. The clock and the pacer of env must be running. progress is called twice a second.
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
	err = p.inLocal(func() error {
		prober, err := stamp.NewType().NewProber(env, probe.Target{Path: "calibration", Probe: "stamp", Peer: p.at}, o.Stamp)
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
	// The sender does not check for a shared clock if both clocks are trusted.
	result.Report.SharedClock = result.Record.SharedClock
	return result, err
}

func prepare(ctx context.Context, o *Options) (*path, error) {
	if err := option.Check(o); err != nil {
		return nil, err
	}
	switch o.Setup {
	case calibration.Loopback:
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
		return ready(ctx, o, &path{listen: at}, netip.AddrPortFrom(at.Addr(), 1))
	case calibration.Veth:
		if d := calibration.DriverOf(o.Interface); o.Interface != "" && d != "veth" {
			return nil, option.Errorf("interface", "is %q with driver %q; a veth pair can only calibrate a veth", o.Interface, d)
		}
		return overVeth(o)
	case calibration.Peer:
		peer, err := resolve(ctx, o)
		if err != nil {
			return nil, err
		}
		return ready(ctx, o, &path{at: peer.String()}, peer)
	}
	return nil, option.Errorf("setup", "is %q; it must be %q, %q or %q", o.Setup, calibration.Loopback, calibration.Veth, calibration.Peer)
}

// resolve resolves the peer's address. It sends nothing.
func resolve(ctx context.Context, o *Options) (netip.AddrPort, error) {
	host, port, err := hostport.Split(o.Peer, stampfmt.Port)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("backtoback: peer %q: %w", o.Peer, err)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		return netip.AddrPort{}, hostport.WithRemedy(fmt.Errorf("backtoback: peer %q: %w", o.Peer, err))
	}
	defer func() { _ = c.Close() }() // nothing was sent
	at := c.RemoteAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), nil
}

// ready determines the interface that the packets pass.
func ready(ctx context.Context, o *Options, p *path, peer netip.AddrPort) (*path, error) {
	var local netip.Addr
	if o.Stamp.Local != "" {
		var err error
		if local, err = netip.ParseAddr(o.Stamp.Local); err != nil {
			return nil, option.Errorf("local", "is %q; it must be an address", o.Stamp.Local)
		}
	}
	name, err := calibration.InterfaceTo(ctx, local, peer)
	if err != nil {
		return nil, err
	}
	if o.Interface != "" && o.Interface != name {
		return nil, option.Errorf("interface", "is %q, but packets to %s pass %q", o.Interface, peer.Addr(), name)
	}
	if h := o.Stamp.Hardware; h != "" && h != name {
		return nil, option.Errorf("hardware", "is %q, but packets to %s pass %q", h, peer.Addr(), name)
	}
	p.stored, p.driver = name, calibration.DriverOf(name)
	here := func(f func() error) error { return f() }
	p.inLocal, p.inRemote, p.close = here, here, func() {}
	return p, nil
}

// reflect starts a reflector and returns its address; stop ends it and waits.
func reflect(ctx context.Context, p *path, o *Options, env probe.Env) (stop func() error, at string, err error) {
	r, err := reflector.New(reflector.Options{
		Listen: []netip.AddrPort{p.listen}, RatePackets: -1, LossWait: o.Stamp.LossTimeout,
	}, reflector.Env{Log: env.Log, Sink: env.Sink, Clock: env.Clock})
	if err != nil {
		return nil, "", err
	}
	// It runs longer than the sender, which requests its final counts.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- p.inRemote(func() error { return r.Run(ctx) }) }()
	select {
	case err := <-ended:
		cancel()
		return nil, "", err
	case <-r.Started():
	}
	return func() error { cancel(); return <-ended }, r.Addrs()[0].String(), nil
}

var errForeign = errors.New("backtoback: calibration needs a oneway reflector at the other end; run `oneway reflect` there")

func record(p *path, o *Options, want sample.Origin, report stamp.Report, c *calibration.Collector) (calibration.Record, error) {
	if report.Reflector != "oneway" { // only oneway reports the origins of its timestamps
		return calibration.Record{}, errForeign
	}
	system := calibration.ThisSystem()
	r := calibration.Record{
		Interface: p.stored, Driver: p.driver, Host: system.Host, Kernel: system.Kernel,
		Date: time.Now().UTC().Truncate(time.Second), Setup: o.Setup, At: report.Peer,
		SharedClock: report.SharedClock || o.Setup != calibration.Peer,
		Origin:      want.String(), PacketBytes: o.Stamp.Size, Interval: o.Stamp.Interval, TrueDelay: o.TrueDelay, Trusted: o.Trust,
	}
	var err error
	if r.Forward, r.Reverse, err = c.Result(o.TrueDelay); err != nil {
		return r, err
	}
	if err = r.Check(); err != nil {
		err = fmt.Errorf("backtoback: not a usable calibration: %w", err)
	}
	return r, err
}

// vethName is the name of both ends; each is in a namespace of its own.
const vethName = "oneway0"

// The addresses of the ends, of a network for documentation (RFC 5737).
const localPrefix, remotePrefix = "192.0.2.1/30", "192.0.2.2/30"

// space is a network namespace without a name: it ends when the descriptor is closed and no socket is left in it, whatever
// happens to this process.
type space struct{ file *os.File }

// onThread runs f on a thread that ends with it, so that f may change the namespace of the thread.
func onThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		result <- f()
	}()
	return <-result
}

func newSpace() (s space, err error) {
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		// /proc/self would be the main thread.
		s.file, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		return err
	})
	if errors.Is(err, unix.EPERM) {
		return s, fmt.Errorf("backtoback: a veth pair needs network namespaces, which only root may make (CAP_SYS_ADMIN): %w", err)
	}
	if err != nil {
		return s, fmt.Errorf("backtoback: new network namespace: %w", err)
	}
	return s, nil
}

// do runs f inside the namespace.
func (s space) do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("backtoback: enter network namespace: %w", err)
		}
		return f()
	})
}

func overVeth(o *Options) (p *path, err error) {
	local, err := newSpace()
	if err != nil {
		return nil, err
	}
	remote, err := newSpace()
	if err != nil {
		local.file.Close()
		return nil, err
	}
	o.Stamp.Local = ""
	p = &path{
		stored: cmp.Or(o.Interface, vethName), driver: "veth", listen: netip.AddrPortFrom(netip.MustParsePrefix(remotePrefix).Addr(), 0),
		inLocal: local.do, inRemote: remote.do, close: func() { local.file.Close(); remote.file.Close() },
	}
	err = errors.Join(local.do(func() error { return pair(remote) }),
		local.do(func() error { return up(localPrefix) }), remote.do(func() error { return up(remotePrefix) }))
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// pair creates the two ends, one in this namespace and one in remote.
func pair(remote space) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = vethName
	err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: vethName, PeerNamespace: netlink.NsFd(remote.file.Fd())})
	if err != nil {
		return fmt.Errorf("backtoback: veth pair: %w", err)
	}
	return nil
}

// up sets the address of this namespace's end, starts it, and checks that it is a veth.
func up(prefix string) error {
	link, err := netlink.LinkByName(vethName)
	if err != nil {
		return fmt.Errorf("backtoback: %s: %w", vethName, err)
	}
	p := netip.MustParsePrefix(prefix)
	address := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if err := errors.Join(netlink.AddrAdd(link, address), netlink.LinkSetUp(link)); err != nil {
		return fmt.Errorf("backtoback: %s: %w", vethName, err)
	}
	if d := calibration.DriverOf(vethName); d != "veth" { // otherwise another interface would be measured
		return fmt.Errorf("backtoback: %s has driver %q, want veth", vethName, d)
	}
	return nil
}
