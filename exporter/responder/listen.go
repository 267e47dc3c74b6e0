package responder

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/control"
)

// gate lets connections in, and counts them: so many in all, and a part of them from one
// address, so that one stranger does not keep all others out.
type gate struct {
	o       *Options
	refused func(unwelcome bool) // counts what was not let in

	mu     sync.Mutex
	open   int
	source map[netip.Addr]int
}

func newGate(o *Options, refused func(bool)) *gate {
	return &gate{o: o, refused: refused, source: map[netip.Addr]int{}}
}

// perSource is the share of the connections that one address may have.
func (g *gate) perSource() int { return max(1, g.o.MaxConnections/4) }

func (g *gate) enter(a netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= g.o.MaxConnections || g.source[a] >= g.perSource() {
		return false
	}
	g.open++
	g.source[a]++
	return true
}

func (g *gate) leave(a netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.source[a]--; g.source[a] == 0 {
		delete(g.source, a)
	}
}

// connections are those open now.
func (g *gate) connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// sourceOf is what counts as one source: an IPv4 address, or an IPv6 network of 64 bits.
func sourceOf(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := t.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		ip = netip.PrefixFrom(ip, 64).Masked().Addr()
	}
	return ip
}

// gatedListener gives out only those connections that the gate lets in; the others are
// reset, which costs no TLS handshake.
type gatedListener struct {
	*net.TCPListener
	gate *gate
}

// Accept waits for the next connection that may come in.
func (l gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		from := sourceOf(c.RemoteAddr())
		peer, _ := c.RemoteAddr().(*net.TCPAddr)
		unwelcome := peer == nil || !l.gate.o.allowed(peer.AddrPort().Addr())
		if !unwelcome && l.gate.enter(from) {
			control.Tune(c)
			g := &gatedConn{TCPConn: c, writing: l.gate.o.writing, leave: sync.OnceFunc(func() { l.gate.leave(from) })}
			g.heard.Store(time.Now().UnixNano())
			return g, nil
		}
		l.gate.refused(unwelcome)
		_ = c.SetLinger(0) // a reset: nothing is kept of it
		_ = c.Close()
	}
}

// writeTime is how long a peer may take to make room for some octets of ours: one that
// only speaks and never reads is not waited for.
const writeTime = 30 * time.Second

// gatedConn is a connection that the gate counts until it is closed.
type gatedConn struct {
	*net.TCPConn
	leave   func()
	writing time.Duration
	heard   atomic.Int64 // when octets last came, Unix ns
}

// Read notes when something came.
func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// Write gives up after writing.
func (c *gatedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.writing)); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(b)
}

// Close lets another in.
func (c *gatedConn) Close() error {
	c.leave()
	return c.TCPConn.Close()
}

// listenTCP opens one address, of its own family only.
func listenTCP(a netip.AddrPort) (*net.TCPListener, error) {
	network := "tcp4"
	if a.Addr().Is6() {
		network = "tcp6"
	}
	l, err := net.ListenTCP(network, net.TCPAddrFromAddrPort(a))
	if err != nil {
		return nil, err
	}
	return l, nil
}
