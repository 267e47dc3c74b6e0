package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"oneway.example/exporter/core/sample"
)

// Lab is a running network. Make it with New or Start, end it with Close.
type Lab struct {
	// Client and Server are its two hosts; forward is from Client to Server.
	Client, Server *Host

	router namespace
	wan    [2]end // the hosts' ends, by the direction that begins there
	inner  [2]end // the router's ends of the same pairs
	// dropsBefore are the frames that found no carrier before the network was up.
	dropsBefore [2]uint64
	links       [2]*link
	removeProcs func()
	closeOnce   sync.Once
	closeErr    error
}

// New builds the network and starts the links. It needs CAP_NET_ADMIN and
// CAP_NET_RAW (root, or a user namespace, see Main).
func New(o Options) (*Lab, error) {
	if err := o.Profile.check(); err != nil {
		return nil, err
	}
	l := &Lab{}
	if err := l.build(&o); err != nil {
		return nil, errors.Join(err, l.remove())
	}
	l.removeProcs = addProcs(len(l.links))
	for _, k := range l.links {
		go k.run()
	}
	if err := l.Client.awaitStamps(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// build makes namespaces, interfaces and links; these stay in l even
// on an error, for remove.
func (l *Lab) build(o *Options) error {
	if err := l.buildHosts(); err != nil {
		return err
	}
	if err := l.buildLAN(); err != nil {
		return err
	}
	return l.buildLinks(o)
}

// buildHosts makes the namespaces and the pairs between them.
func (l *Lab) buildHosts() error {
	for _, n := range []*namespace{&l.router, l.newHost(&l.Client, "client", 1), l.newHost(&l.Server, "server", 2)} {
		var err error
		if *n, err = newNamespace(); err != nil {
			return err
		}
		if err := n.loopbackUp(); err != nil {
			return err
		}
	}
	hosts := [2]*Host{l.Client, l.Server}
	for i, h := range hosts {
		l.wan[i] = end{h.space, "wan0", mac(byte(1 + i)), []netip.Prefix{
			netip.PrefixFrom(h.Addr4, 24), netip.PrefixFrom(h.Addr6, 64),
		}}
		l.inner[i] = end{l.router, h.Name, mac(byte(3 + i)), nil}
		if err := connect(l.inner[i], l.wan[i]); err != nil {
			return err
		}
	}
	return nil
}

// newHost fills in a host but for its namespace, which it returns for filling.
func (l *Lab) newHost(h **Host, name string, number byte) *namespace {
	*h = &Host{
		Name:  name,
		Addr4: addr4(0, number),
		Addr6: ula(0, number),
		LAN4:  addr4(1, number),
		LAN6:  ula(1, number),
	}
	return &(*h).space
}

// Addresses are Client.Addr4 and Server.Addr4, which every Lab has: a Classifier is made
// before its Lab is.
func Addresses() (client, server netip.Addr) { return addr4(0, 1), addr4(0, 2) }

func addr4(subnet, host byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, subnet, host}) }

// ula is fd77:6f77::subnet:0:0:0:host (RFC 4193).
func ula(subnet, host byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 2: 0x6f, 3: 0x77, 7: subnet, 15: host})
}

// buildLAN connects the hosts by a pair without a link.
func (l *Lab) buildLAN() error {
	var ends [2]end
	for i, h := range []*Host{l.Client, l.Server} {
		ends[i] = end{h.space, "lan0", mac(byte(5 + i)), []netip.Prefix{
			netip.PrefixFrom(h.LAN4, 24), netip.PrefixFrom(h.LAN6, 64),
		}}
	}
	if err := connect(ends[0], ends[1]); err != nil {
		return err
	}
	if err := errors.Join(ends[0].up(ends[1]), ends[1].up(ends[0])); err != nil {
		return err
	}
	return errors.Join(ends[0].ready(), ends[1].ready())
}

// buildLinks opens the rings before the router's ends come up and with them the
// carrier, so that the rings receive every frame from the first.
func (l *Lab) buildLinks(o *Options) error {
	var index [2]int
	for i := range l.inner {
		if err := errors.Join(l.inner[i].plainFrames(), l.wan[i].plainFrames(), l.wan[i].up(l.wan[1-i])); err != nil {
			return err
		}
		var err error
		if index[i], err = l.inner[i].index(); err != nil {
			return err
		}
	}
	err := l.router.do(func() (err error) {
		l.links[sample.Forward], err = newLink(sample.Forward, index[0], index[1], o.Profile.Forward, o)
		if err != nil {
			return err
		}
		l.links[sample.Reverse], err = newLink(sample.Reverse, index[1], index[0], o.Profile.Reverse, o)
		return err
	})
	if err != nil {
		return err
	}
	if err := errors.Join(l.inner[0].up(end{}), l.inner[1].up(end{})); err != nil {
		return err
	}
	if err := errors.Join(l.wan[0].ready(), l.wan[1].ready()); err != nil {
		return err
	}
	return l.countDrops(l.dropsBefore[:])
}

// Log is the truth about the classified packets of a direction, in order of entry.
func (l *Lab) Log(d sample.Direction) []Record { return l.links[d].pipe.log.snapshot() }

// Counts are the outcomes of the classified packets of a direction, others those
// of all other IP packets (without neighbor discovery).
func (l *Lab) Counts(d sample.Direction) (classified, others Counts) {
	return l.links[d].pipe.log.totals()
}

// KeyCounts are the outcomes of the classified packets of a direction by their keys, with
// Options.CountKeys.
func (l *Lab) KeyCounts(d sample.Direction) map[uint64]Counts { return l.links[d].pipe.log.keys() }

// SetLink changes a direction for the packets that enter from now on (within
// 2 ms). Packets inside keep their times.
func (l *Lab) SetLink(d sample.Direction, to Link) error {
	if key, err := to.check(); err != nil {
		return fmt.Errorf("lab: %s.%s: %w", d, key, err)
	}
	l.links[d].next.Store(&to)
	return nil
}

// Err has every fault of the lab itself so far; nil means that all losses
// are the link's own and in the log.
func (l *Lab) Err() error {
	var all []error
	for d, k := range l.links {
		all = append(all, k.err(sample.Direction(d)))
	}
	var drops [2]uint64
	all = append(all, l.countDrops(drops[:]))
	for d, n := range drops {
		if n > l.dropsBefore[d] {
			all = append(all, fmt.Errorf("lab: %s: interfaces dropped %d frames: %w", sample.Direction(d), n-l.dropsBefore[d], errLost))
		}
	}
	return errors.Join(all...)
}

// err has every fault of the link so far.
func (k *link) err(direction sample.Direction) error {
	var all []error
	if err := k.failure.Load(); err != nil {
		all = append(all, fmt.Errorf("lab: %s: %w", direction, *err))
	}
	if err := k.pipe.log.err(); err != nil {
		all = append(all, fmt.Errorf("lab: %s: %w", direction, err))
	}
	if n, err := k.in.losses(); err != nil || n > 0 {
		all = append(all, fmt.Errorf("lab: %s: %d frames did not fit into the ring: %w", direction, n, errors.Join(errLost, err)))
	}
	return errors.Join(all...)
}

// errLost marks losses that the lab itself caused.
var errLost = errors.New("the lab lost packets, the run is void")

// countDrops counts, for each direction, the frames that an interface at its
// entrance or at its exit could not pass to the other end of its pair.
func (l *Lab) countDrops(into []uint64) error {
	for d := range into {
		into[d] = 0
		for _, e := range []end{l.wan[d], l.inner[1-d]} {
			s, err := e.statistics()
			if err != nil {
				return err
			}
			into[d] += s.TxDropped
		}
	}
	return nil
}

// Drain waits until every sent packet has entered and left the
// link in both directions, and returns Err. Call it after the senders have
// stopped and before reading the log.
func (l *Lab) Drain(ctx context.Context) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		idle, err := l.idle()
		if err != nil {
			return err
		}
		if idle {
			return l.Err()
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("lab: drain: %w", ctx.Err()), l.Err())
		case <-tick.C:
		}
	}
}

// idle compares the packets that the interfaces sent with those that the links received.
func (l *Lab) idle() (bool, error) {
	for d, k := range l.links {
		if err := k.failure.Load(); err != nil {
			return true, nil // Err tells
		}
		counted, others := l.Counts(sample.Direction(d))
		if counted.Inside()+others.Inside() > 0 {
			return false, nil
		}
		s, err := l.wan[d].statistics()
		if err != nil {
			return false, err
		}
		lost, err := k.in.losses()
		if err != nil {
			return false, err
		}
		if k.seen.Load()+lost < s.TxPackets {
			return false, nil
		}
		// Packets received since the first check must have left, too.
		counted, others = l.Counts(sample.Direction(d))
		if counted.Inside()+others.Inside() > 0 {
			return false, nil
		}
	}
	return true, nil
}

// Close stops the links and removes all interfaces and namespaces. Packets
// inside are lost. It returns the previous Err. Processes that still run in
// a namespace keep it, without its links.
func (l *Lab) Close() error {
	l.closeOnce.Do(func() {
		err := l.Err()
		for _, k := range l.links {
			k.halt()
		}
		l.removeProcs()
		l.closeErr = errors.Join(err, l.remove())
	})
	return l.closeErr
}

// remove deletes what build made.
func (l *Lab) remove() error {
	var all []error
	for _, k := range l.links {
		if k != nil {
			k.close()
		}
	}
	if l.router.file != nil {
		// Now, and not when the kernel deletes the namespaces.
		all = append(all, l.router.deleteLinks())
	}
	for _, h := range []*Host{l.Client, l.Server} {
		if h != nil && h.space.file != nil {
			all = append(all, h.space.deleteLinks(), h.space.close())
		}
	}
	if l.router.file != nil {
		all = append(all, l.router.close())
	}
	return errors.Join(all...)
}

// procsMu serializes the change of GOMAXPROCS by two labs at a time.
var procsMu sync.Mutex

// addProcs gives the scheduler n more processors for goroutines: a
// link's thread must not wait for one behind the program under
// test, which would cost it milliseconds. The kernel's priorities do the rest.
func addProcs(n int) (remove func()) {
	change := func(by int) {
		procsMu.Lock()
		defer procsMu.Unlock()
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + by)
	}
	change(n)
	return func() { change(-n) }
}
