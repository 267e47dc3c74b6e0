// Package middlebox builds paths with a box between the ends: a router, a router that translates addresses or clamps the MSS, a
// firewall that proxies SYNs, or a transparent proxy that splits TCP connections. An emulated link lies before the box,
// behind it, or on both sides.
//
//	client --veth-- box ==link== server      Near
//	client ==link== box --veth-- server      Far
//	client ==link== box --veth-- router ==link== server      Middle
//	client ==link== server      None
//
// Both ends have an address of their own (Client, Server), on all paths the same.
package middlebox

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"oneway.example/tests/lab"
)

// Place is where the box stands.
type Place int

// The places.
const (
	None Place = iota
	Near
	Far
	Middle
)

// Addresses of the ends.
var (
	Client = netip.MustParseAddr("10.79.0.1")
	Server = netip.MustParseAddr("10.79.0.2")
)

// Path is a client and a server with a box between them.
type Path struct {
	Client, Server *lab.Host
	// Box is nil without one. Inside is its interface towards the client, Outside the one towards the server.
	Box             *lab.Host
	Inside, Outside string
	// Links are the emulated ones, from the client on.
	Links []*lab.Lab
	hosts []*lab.Host
	hops  []hop
}

// hop connects two hosts of a path.
type hop struct {
	left, right         string // the interfaces
	leftAddr, rightAddr netip.Addr
}

// veth connects two hosts by a hop without an emulated link, of which a path has at most three.
func veth(t lab.TB, number byte, left, right *lab.Host) hop {
	t.Helper()
	h := hop{
		fmt.Sprintf("out%d", number), fmt.Sprintf("in%d", number),
		netip.AddrFrom4([4]byte{10, 78, number, 1}), netip.AddrFrom4([4]byte{10, 78, number, 2}),
	}
	must(t, lab.Join(
		lab.Joint{Host: left, Name: h.left, Address: netip.PrefixFrom(h.leftAddr, 24)},
		lab.Joint{Host: right, Name: h.right, Address: netip.PrefixFrom(h.rightAddr, 24)},
	))
	return h
}

// New builds a path until the test ends. Each emulated link has these options: with Middle, both.
func New(t lab.TB, at Place, o lab.Options) *Path {
	t.Helper()
	p := &Path{}
	p.emulate(t, o)
	switch at {
	case Near:
		p.join(t, lab.StartHost(t, "client"), p.hosts[0])
		p.Box, p.Inside, p.Outside = p.hosts[1], p.hops[0].right, p.hops[1].left
	case Far:
		p.join(t, p.hosts[1], lab.StartHost(t, "server"))
		p.Box, p.Inside, p.Outside = p.hosts[1], p.hops[0].right, p.hops[1].left
	case Middle:
		p.emulate(t, o)
		p.Box, p.Inside, p.Outside = p.hosts[1], p.hops[0].right, p.hops[1].left
	case None:
	}
	last := len(p.hosts) - 1
	p.Client, p.Server = p.hosts[0], p.hosts[last]
	must(t, address(p.Client, Client), address(p.Server, Server))
	for i, h := range p.hosts {
		if i > 0 {
			p.route(t, h, Client, p.hops[i-1].leftAddr, i == last, Server)
		}
		if i < last {
			p.route(t, h, Server, p.hops[i].rightAddr, i == 0, Client)
		}
		must(t, forwards(h))
	}
	return p
}

// SeparateTCP sends TCP, in both directions, over another emulated link. The router behind that is the box of a path without one.
func (p *Path) SeparateTCP(t lab.TB, o lab.Options) {
	t.Helper()
	l := lab.Start(t, o)
	p.Links = append(p.Links, l)
	first, last := veth(t, 1, p.Client, l.Client), veth(t, 2, l.Server, p.Server)
	must(t,
		tcpVia(p.Client, first.rightAddr, Client), tcpVia(p.Server, last.leftAddr, Server),
		Run(l.Client, "", "ip", "route", "add", Client.String(), "via", first.leftAddr.String()),
		Run(l.Client, "", "ip", "route", "add", Server.String(), "via", l.Server.Addr4.String()),
		Run(l.Server, "", "ip", "route", "add", Client.String(), "via", l.Client.Addr4.String()),
		Run(l.Server, "", "ip", "route", "add", Server.String(), "via", last.rightAddr.String()),
	)
	for _, h := range []*lab.Host{p.Client, p.Server, l.Client, l.Server} {
		must(t, forwards(h))
	}
	if p.Box == nil {
		p.Box, p.Inside, p.Outside = l.Server, "wan0", last.left
	}
}

// tcpVia gives the TCP of an end a route of its own.
func tcpVia(h *lab.Host, via, own netip.Addr) error {
	return errors.Join(
		Run(h, "", "ip", "route", "add", "default", "via", via.String(), "src", own.String(), "table", "101"),
		Run(h, "", "ip", "rule", "add", "ipproto", "tcp", "lookup", "101"),
	)
}

// emulate adds an emulated link behind the hosts so far.
func (p *Path) emulate(t lab.TB, o lab.Options) {
	t.Helper()
	l := lab.Start(t, o)
	if len(p.hosts) > 0 {
		p.join(t, p.hosts[len(p.hosts)-1], l.Client)
		p.hosts = p.hosts[:len(p.hosts)-1]
	}
	p.Links, p.hosts = append(p.Links, l), append(p.hosts, l.Client, l.Server)
	p.hops = append(p.hops, hop{"wan0", "wan0", l.Client.Addr4, l.Server.Addr4})
}

// join connects two hosts without an emulated link, of which one is at an end of the path so far.
func (p *Path) join(t lab.TB, left, right *lab.Host) {
	t.Helper()
	h := veth(t, 0, left, right)
	if right == p.hosts[0] {
		p.hosts, p.hops = append([]*lab.Host{left}, p.hosts...), append([]hop{h}, p.hops...)
		return
	}
	p.hosts, p.hops = append(p.hosts, right), append(p.hops, h)
}

// address gives an end its address.
func address(h *lab.Host, a netip.Addr) error {
	return Run(h, "", "ip", "address", "add", a.String()+"/32", "dev", "lo")
}

// route adds the way to an end; an end sends all that way, from its own address.
func (p *Path) route(t lab.TB, h *lab.Host, to, via netip.Addr, isEnd bool, own netip.Addr) {
	t.Helper()
	if isEnd {
		must(t, Run(h, "", "ip", "route", "add", "default", "via", via.String(), "src", own.String()))
		return
	}
	must(t, Run(h, "", "ip", "route", "add", to.String()+"/32", "via", via.String()))
}

// Run runs a command on a host, with an input, and returns its output as an error if it fails.
func Run(h *lab.Host, input, name string, args ...string) error {
	c := h.Command(name, args...)
	return run(c, input)
}

func run(c *exec.Cmd, input string) error {
	c.Stdin = strings.NewReader(input)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("middlebox: %s: %w: %s", strings.Join(c.Args, " "), err, out)
	}
	return nil
}

// sysctl sets a value of net on a host.
func sysctl(h *lab.Host, name, value string) error {
	return h.Do(func() error { return os.WriteFile("/proc/sys/net/"+name, []byte(value), 0) })
}

// forwards makes a host forward, and turns off its filter of packets whose source has another way (RFC 3704): the addresses of
// all emulated links are the same. The effective value is the larger of those of an interface and of all.
func forwards(h *lab.Host) error {
	return h.Do(func() error {
		err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
		files, _ := filepath.Glob("/proc/sys/net/ipv4/conf/*/rp_filter")
		for _, f := range files { // the pattern is right
			err = errors.Join(err, os.WriteFile(f, []byte("0"), 0))
		}
		return err
	})
}

func must(t lab.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
}
