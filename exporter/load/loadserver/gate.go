package loadserver

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/load/loadcontrol"
)

// gate limits the connections: in total, and of each source those of unknown peers, which have not
// authenticated. At a limit a new connection replaces that of an unknown peer: the oldest of the
// source with the most. So unknown peers replace each other, but no session, and no client that
// authenticates sooner than they are replaced.
type gate struct {
	o       *Options
	refused func(loadcontrol.Reason) // counts connections that were rejected or replaced

	mu           sync.Mutex
	open         int
	sources      map[netip.Prefix]*source
	unknownPeers []*gatedConn // not authenticated, the oldest first
}

// source is one or more addresses that may belong to one client.
type source struct {
	prefix             netip.Prefix
	open, unknownPeers int
}

func newGate(o *Options, refused func(loadcontrol.Reason)) *gate {
	return &gate{o: o, refused: refused, sources: map[netip.Prefix]*source{}}
}

// A host has one IPv4 address or an IPv6 network of 64 bits; a site has an IPv6 network of 48
// bits.
const (
	hostBits = 64
	siteBits = 48
)

// hostPart and sitePart are the parts of all connections that unknown peers from one host, and from one site, may have.
const hostPart, sitePart = 4, 2

// perHost and perSite are the limits of connections of unknown peers from one host and one site.
func (g *gate) perHost() int { return max(1, g.o.MaxConnections/hostPart) }
func (g *gate) perSite() int { return max(1, g.o.MaxConnections/sitePart) }

// enter admits a connection from an address; false: the limits are reached and none can be replaced.
func (g *gate) enter(c *gatedConn, from netip.Addr) bool {
	g.mu.Lock()
	c.host, c.site = g.source(from, hostBits), g.source(from, siteBits)
	full := c.host.unknownPeers >= g.perHost() || c.site.unknownPeers >= g.perSite() || g.open >= g.o.MaxConnections
	var replaced *gatedConn
	if full {
		if replaced = g.next(c); replaced == nil {
			g.removeUnused(c)
			g.mu.Unlock()
			return false
		}
		g.remove(replaced)
	}
	g.open++
	for _, s := range c.sources() {
		g.sources[s.prefix] = s // its last connection may just have been removed
		s.open++
		s.unknownPeers++
	}
	g.unknownPeers = append(g.unknownPeers, c)
	g.mu.Unlock()
	if replaced != nil {
		g.refused(loadcontrol.TooMany)
		reset(replaced.TCPConn)
	}
	return true
}

// next returns the connection that a new one replaces: of its own host or site if that is at its
// limit. mu must be held.
func (g *gate) next(c *gatedConn) (replaced *gatedConn) {
	for _, s := range g.unknownPeers {
		switch {
		case c.host.unknownPeers >= g.perHost() && s.host != c.host, c.site.unknownPeers >= g.perSite() && s.site != c.site:
		case replaced == nil, s.site.unknownPeers > replaced.site.unknownPeers,
			s.site.unknownPeers == replaced.site.unknownPeers && s.host.unknownPeers > replaced.host.unknownPeers:
			replaced = s
		}
	}
	return replaced
}

// source returns the network of bits that contains an address; mu must be held.
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

// sources of a connection: one for an IPv4 address.
func (c *gatedConn) sources() []*source {
	if c.site == c.host {
		return []*source{c.host}
	}
	return []*source{c.host, c.site}
}

// remove removes a connection from the counts, once; mu must be held.
func (g *gate) remove(c *gatedConn) {
	if c.removed {
		return
	}
	g.authenticate(c)
	c.removed = true
	g.open--
	for _, s := range c.sources() {
		s.open--
	}
	g.removeUnused(c)
}

// authenticate removes a connection from the unknown peers; mu must be held.
func (g *gate) authenticate(c *gatedConn) {
	i := slices.Index(g.unknownPeers, c)
	if i < 0 {
		return
	}
	g.unknownPeers = slices.Delete(g.unknownPeers, i, i+1)
	for _, s := range c.sources() {
		s.unknownPeers--
	}
}

// removeUnused deletes sources without connections; mu must be held.
func (g *gate) removeUnused(c *gatedConn) {
	for _, s := range c.sources() {
		if s.open == 0 {
			delete(g.sources, s.prefix)
		}
	}
}

// connections returns the number of open connections.
func (g *gate) connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// allowedListener accepts only connections from allowed sources (Options.Allow) and resets the
// others.
type allowedListener struct {
	net.Listener // of TCP
	gate         *gate
}

// Accept returns the next connection from an allowed source.
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

// gatedListener also requires admission by the gate; rejected connections cost no TLS handshake.
type gatedListener struct{ allowedListener }

// Accept returns the next admitted connection.
func (l gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.allowedListener.Accept()
		if err != nil {
			return nil, err
		}
		g := &gatedConn{TCPConn: c.(*net.TCPConn), gate: l.gate}
		g.zone = zoneOf(l.Addr(), c.LocalAddr())
		if l.gate.enter(g, peerOf(c)) {
			return g, nil
		}
		l.gate.refused(loadcontrol.TooMany)
		reset(g.TCPConn)
	}
}

// writeTime is the write timeout: a peer that sends and never reads is
// disconnected.
const writeTime = 30 * time.Second

// gatedConn is a connection that counts in the gate until it is closed.
type gatedConn struct {
	*net.TCPConn
	gate *gate
	// zone is the interface of a link-local address (zoneOf).
	zone string

	host, site *source
	removed    bool // removed from the counts; guarded by gate.mu
}

// zoneOf returns the interface of a connection's local address: the listener's, or for a listener at all addresses the only one that
// has this link-local address. Empty: it is not link-local, or several have it.
func zoneOf(listener, local net.Addr) (zone string) {
	if at, ok := listener.(*net.TCPAddr); ok && at.Zone != "" {
		return at.Zone
	}
	at, ok := local.(*net.TCPAddr)
	if !ok || at.Zone != "" || !at.IP.IsLinkLocalUnicast() || at.IP.To4() != nil {
		return ""
	}
	all, _ := net.Interfaces() // without them it is unknown
	for _, one := range all {
		addresses, _ := one.Addrs()
		if !slices.ContainsFunc(addresses, func(a net.Addr) bool { n, ok := a.(*net.IPNet); return ok && n.IP.Equal(at.IP) }) {
			continue
		}
		if zone != "" {
			return ""
		}
		zone = one.Name
	}
	return zone
}

// LocalAddr has the interface of a link-local address, which the kernel returns for a link-local peer only.
func (c *gatedConn) LocalAddr() net.Addr {
	at, ok := c.TCPConn.LocalAddr().(*net.TCPAddr)
	if !ok || at.Zone != "" || c.zone == "" { // nil after Close
		return c.TCPConn.LocalAddr()
	}
	with := *at
	with.Zone = c.zone
	return &with
}

// Write fails after Options.writing.
func (c *gatedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.gate.o.writing)); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(b)
}

// Close removes the connection from the gate.
func (c *gatedConn) Close() error {
	c.gate.mu.Lock()
	c.gate.remove(c)
	c.gate.mu.Unlock()
	return c.TCPConn.Close()
}

// reset closes a connection with a TCP RST and drops its unsent data.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // it may be closed already
	_ = c.Close()
}

// authenticated protects the connection from replacement.
func (c *gatedConn) authenticated() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.gate.authenticate(c)
}
