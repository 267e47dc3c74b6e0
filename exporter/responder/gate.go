package responder

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/control"
)

// gate lets connections in, and counts them: so many in all, and a part of them strangers,
// which have not authenticated, from one source. Who comes when there is no room takes the place of a stranger: the
// oldest of the busiest source. So strangers push one another out, and
// neither a session nor, as long as it is quicker than they, a client on its way to one.
type gate struct {
	o       *Options
	refused func(control.Reason) // counts what was not let in, or had to go

	mu        sync.Mutex
	open      int
	sources   map[netip.Prefix]*source
	strangers []*gatedConn // that have not authenticated, the oldest first
}

// source is one or more addresses that may be one client's.
type source struct {
	prefix          netip.Prefix
	open, strangers int
}

func newGate(o *Options, refused func(control.Reason)) *gate {
	return &gate{o: o, refused: refused, sources: map[netip.Prefix]*source{}}
}

// A host has one IPv4 address, and any of an IPv6 network of 64 bits; a site has a network
// of 48 bits.
const (
	hostBits = 64
	siteBits = 48
)

// perHost and perSite are the shares of the connections that strangers of one may have.
func (g *gate) perHost() int { return max(1, g.o.MaxConnections/4) }
func (g *gate) perSite() int { return max(1, g.o.MaxConnections/2) }

// enter lets a connection from an address in. false: there is no room, and none can be made.
func (g *gate) enter(c *gatedConn, from netip.Addr) bool {
	g.mu.Lock()
	c.host, c.site = g.source(from, hostBits), g.source(from, siteBits)
	full := c.host.strangers >= g.perHost() || c.site.strangers >= g.perSite() || g.open >= g.o.MaxConnections
	var goes *gatedConn
	if full {
		if goes = g.next(c); goes == nil {
			g.forget(c)
			g.mu.Unlock()
			return false
		}
		g.remove(goes)
	}
	g.open++
	for _, s := range c.sources() {
		g.sources[s.prefix] = s // the last of it may just have gone
		s.open++
		s.strangers++
	}
	g.strangers = append(g.strangers, c)
	g.mu.Unlock()
	if goes != nil {
		g.refused(control.TooMany)
		reset(goes.TCPConn)
	}
	return true
}

// next is who goes for a newcomer: one of his own host or site if that has its share. mu is
// held.
func (g *gate) next(c *gatedConn) (goes *gatedConn) {
	for _, s := range g.strangers {
		switch {
		case c.host.strangers >= g.perHost() && s.host != c.host, c.site.strangers >= g.perSite() && s.site != c.site:
		case goes == nil, s.site.strangers > goes.site.strangers,
			s.site.strangers == goes.site.strangers && s.host.strangers > goes.host.strangers:
			goes = s
		}
	}
	return goes
}

// source is the one of so many bits that an address belongs to; mu is held.
func (g *gate) source(a netip.Addr, bits int) *source {
	if a.Is4() {
		bits = a.BitLen()
	}
	prefix := netip.PrefixFrom(a, bits).Masked()
	s := g.sources[prefix]
	if s == nil {
		s = &source{prefix: prefix}
		g.sources[prefix] = s
	}
	return s
}

// sources of a connection: of an IPv4 address, one.
func (c *gatedConn) sources() []*source {
	if c.site == c.host {
		return []*source{c.host}
	}
	return []*source{c.host, c.site}
}

// remove counts a connection out, once; mu is held.
func (g *gate) remove(c *gatedConn) {
	if c.gone {
		return
	}
	g.know(c)
	c.gone = true
	g.open--
	for _, s := range c.sources() {
		s.open--
	}
	g.forget(c)
}

// know takes a connection from the strangers; mu is held.
func (g *gate) know(c *gatedConn) {
	i := slices.Index(g.strangers, c)
	if i < 0 {
		return
	}
	g.strangers = slices.Delete(g.strangers, i, i+1)
	for _, s := range c.sources() {
		s.strangers--
	}
}

// forget drops sources without a connection; mu is held.
func (g *gate) forget(c *gatedConn) {
	for _, s := range c.sources() {
		if s.open == 0 {
			delete(g.sources, s.prefix)
		}
	}
}

// connections are those open now.
func (g *gate) connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// allowedListener gives out only connections of sources that are allowed (Options.Allow); the others
// are reset.
type allowedListener struct {
	net.Listener // of TCP
	gate         *gate
}

// Accept waits for the next connection that may come in.
func (l allowedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || l.gate.o.allowed(peerOf(c)) {
			return c, err
		}
		l.gate.refused(control.Unauthorised)
		reset(c.(*net.TCPConn))
	}
}

func peerOf(c net.Conn) netip.Addr {
	return c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap().WithZone("")
}

// gatedListener gives out only those that the gate lets in, too; the others cost no TLS handshake.
type gatedListener struct{ allowedListener }

// Accept waits for the next connection that may come in.
func (l gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.allowedListener.Accept()
		if err != nil {
			return nil, err
		}
		g := &gatedConn{TCPConn: c.(*net.TCPConn), gate: l.gate}
		if l.gate.enter(g, peerOf(c)) {
			return g, nil
		}
		l.gate.refused(control.TooMany)
		reset(g.TCPConn)
	}
}

// writeTime is how long a peer may take to make room for some octets of ours: one that
// only speaks and never reads is not waited for.
const writeTime = 30 * time.Second

// gatedConn is a connection that the gate counts until it is closed.
type gatedConn struct {
	*net.TCPConn
	gate *gate

	host, site *source
	gone       bool // it is counted no more; guarded by gate.mu
}

// Write gives up after Options.writing.
func (c *gatedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.gate.o.writing)); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(b)
}

// Close lets another in.
func (c *gatedConn) Close() error {
	c.gate.mu.Lock()
	c.gate.remove(c)
	c.gate.mu.Unlock()
	return c.TCPConn.Close()
}

// reset closes a connection of which nothing is to be kept.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // it may be closed already
	_ = c.Close()
}

// authenticated keeps the connection's place from those that come.
func (c *gatedConn) authenticated() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.gate.know(c)
}
