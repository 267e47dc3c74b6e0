package loadserver

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/loadcontrol"
)

// gate lets connections in, and counts them: so many in all, and a part of them unknown peers,
// which have not authenticated, from one source. Who comes when there is no room takes the place of an unknown peer: the
// oldest of the busiest source. So unknown peers push one another out, and
// neither a session nor, as long as it is quicker than they, a client on its way to one.
type gate struct {
	o       *Options
	refused func(loadcontrol.Reason) // counts what was not let in, or had to go

	mu           sync.Mutex
	open         int
	sources      map[netip.Prefix]*source
	unknownPeers []*gatedConn // that have not authenticated, the oldest first
}

// source is one or more addresses that may be one client's.
type source struct {
	prefix             netip.Prefix
	open, unknownPeers int
}

func newGate(o *Options, refused func(loadcontrol.Reason)) *gate {
	return &gate{o: o, refused: refused, sources: map[netip.Prefix]*source{}}
}

// A host has one IPv4 address, and any of an IPv6 network of 64 bits; a site has a network
// of 48 bits.
const (
	hostBits = 64
	siteBits = 48
)

// perHost and perSite are the shares of the connections that unknown peers of one may have.
func (g *gate) perHost() int { return max(1, g.o.MaxConnections/4) }
func (g *gate) perSite() int { return max(1, g.o.MaxConnections/2) }

// enter lets a connection from an address in. false: there is no room, and none can be made.
func (g *gate) enter(c *gatedConn, from netip.Addr) bool {
	g.mu.Lock()
	c.host, c.site = g.source(from, hostBits), g.source(from, siteBits)
	full := c.host.unknownPeers >= g.perHost() || c.site.unknownPeers >= g.perSite() || g.open >= g.o.MaxConnections
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
		s.unknownPeers++
	}
	g.unknownPeers = append(g.unknownPeers, c)
	g.mu.Unlock()
	if goes != nil {
		g.refused(loadcontrol.TooMany)
		reset(goes.TCPConn)
	}
	return true
}

// next is who goes for a newcomer: one of his own host or site if that has its share. mu is
// held.
func (g *gate) next(c *gatedConn) (goes *gatedConn) {
	for _, s := range g.unknownPeers {
		switch {
		case c.host.unknownPeers >= g.perHost() && s.host != c.host, c.site.unknownPeers >= g.perSite() && s.site != c.site:
		case goes == nil, s.site.unknownPeers > goes.site.unknownPeers,
			s.site.unknownPeers == goes.site.unknownPeers && s.host.unknownPeers > goes.host.unknownPeers:
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

// know takes a connection from the unknown peers; mu is held.
func (g *gate) know(c *gatedConn) {
	i := slices.Index(g.unknownPeers, c)
	if i < 0 {
		return
	}
	g.unknownPeers = slices.Delete(g.unknownPeers, i, i+1)
	for _, s := range c.sources() {
		s.unknownPeers--
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
		l.gate.refused(loadcontrol.Unauthorized)
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
		l.gate.refused(loadcontrol.TooMany)
		reset(g.TCPConn)
	}
}

// writeTime is how long a peer may take to make space for some bytes of ours: one that
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
