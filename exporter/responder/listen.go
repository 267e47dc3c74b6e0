package responder

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"oneway.example/exporter/control"
)

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
		g := &gatedConn{TCPConn: c, gate: l.gate}
		unwelcome := !from.IsValid() || !l.gate.o.allowed(from)
		if !unwelcome && l.gate.enter(g, from) {
			control.Tune(c)
			g.heard.Store(time.Now().UnixNano())
			return g, nil
		}
		l.gate.refused(unwelcome)
		g.reset()
	}
}

// writeTime is how long a peer may take to make room for some octets of ours: one that
// only speaks and never reads is not waited for.
const writeTime = 30 * time.Second

// gatedConn is a connection that the gate counts until it is closed.
type gatedConn struct {
	*net.TCPConn
	gate  *gate
	heard atomic.Int64 // when octets last came, Unix ns

	host, site *source
	gone       bool // it is counted no more; guarded by gate.mu
}

// Read notes when something came.
func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	return n, err
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
func (c *gatedConn) reset() {
	_ = c.SetLinger(0) // it may be closed already
	_ = c.TCPConn.Close()
}

// authenticated keeps the connection's place from those that come; of nil it is nothing.
func (c *gatedConn) authenticated() {
	if c == nil {
		return
	}
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.gate.know(c)
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
