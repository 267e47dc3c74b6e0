package httpd

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// limiter lets connections in, so many in all and so many of one source. When there is no room,
// the newest comes in and another goes: of the source itself if that has its share, else of
// the source that has the most. One without a request goes before one with, the oldest first.
type limiter struct {
	total, share int

	mu      sync.Mutex
	open    map[*conn]struct{}
	sources map[netip.Addr]int
	turn    uint64 // counts what connections did, to tell the oldest
}

func newLimiter(total, share int) *limiter {
	return &limiter{total: total, share: share, open: map[*conn]struct{}{}, sources: map[netip.Addr]int{}}
}

// conn is a connection that has come in.
type conn struct {
	net.Conn
	limiter *limiter
	from    netip.Addr
	// since is the turn in which it came in, or its last request began or ended; requests are those
	// that are answered now. The door's lock guards both.
	since    uint64
	requests int
}

// enter lets c in, and closes another if there is no room.
func (d *limiter) enter(c net.Conn) *conn {
	one := &conn{Conn: c, limiter: d, from: sourceOf(c.RemoteAddr())}
	d.mu.Lock()
	var gone *conn
	switch {
	case d.sources[one.from] >= d.share:
		gone = d.oldest(func(o *conn) bool { return o.from == one.from })
	case len(d.open) >= d.total:
		gone = d.oldest(d.busiest())
	}
	d.remove(gone)
	d.turn++
	one.since = d.turn
	d.open[one] = struct{}{}
	d.sources[one.from]++
	d.mu.Unlock()
	gone.reset()
	return one
}

// busiest says whether a connection is of one of the sources that have the most.
func (d *limiter) busiest() func(*conn) bool {
	most := 0
	for _, n := range d.sources {
		most = max(most, n)
	}
	return func(c *conn) bool { return d.sources[c.from] == most }
}

// oldest is the connection, of those that are meant, that goes first; nil if there is none.
func (d *limiter) oldest(meant func(*conn) bool) (first *conn) {
	for c := range d.open {
		if !meant(c) {
			continue
		}
		busy, other := c.requests > 0, first != nil && first.requests > 0
		if first == nil || !busy && other || busy == other && c.since < first.since {
			first = c
		}
	}
	return first
}

func (d *limiter) remove(c *conn) {
	if _, open := d.open[c]; !open {
		return
	}
	delete(d.open, c)
	if d.sources[c.from]--; d.sources[c.from] == 0 {
		delete(d.sources, c.from)
	}
}

// reset closes a connection, of which nothing is kept; nil: none.
func (c *conn) reset() {
	if c == nil {
		return
	}
	c.keepNothing()
	_ = c.Conn.Close() // it is not wanted
}

// keepNothing has the kernel forget what is not sent when the connection is closed.
func (c *conn) keepNothing() {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}

// Write writes to the connection. One that takes nothing any more is closed next, and would be kept
// by the kernel, with what was written before, for as long as nobody reads it.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.keepNothing()
	}
	return n, err
}

// Close closes the connection and makes room.
func (c *conn) Close() error {
	c.limiter.mu.Lock()
	c.limiter.remove(c)
	c.limiter.mu.Unlock()
	return c.Conn.Close()
}

// count counts requests that begin (1) or have ended (-1).
func (c *conn) count(n int) {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.requests += n
	c.limiter.turn++
	c.since = c.limiter.turn
}

type connKey struct{}

// connContext is http.Server.ConnContext: requests know their connection.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// counted counts the requests of each connection.
func counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.count(1)
			defer c.count(-1)
		}
		next.ServeHTTP(w, r)
	})
}

// limiterListener accepts through a door.
type limiterListener struct {
	net.Listener
	limiter *limiter
	space   *space
}

// Accept never keeps a newcomer out.
func (l limiterListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.space.limit(c)
	return l.limiter.enter(c), nil
}

// sourceOf is what counts as one source: an IPv4 address, an IPv6 network of 64 bits, or all
// that come over UNIX sockets.
func sourceOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return sourceAt(t.AddrPort())
	}
	return netip.Addr{}
}

func sourceAt(a netip.AddrPort) netip.Addr {
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is6() {
		ip = netip.PrefixFrom(ip, 64).Masked().Addr()
	}
	return ip
}
