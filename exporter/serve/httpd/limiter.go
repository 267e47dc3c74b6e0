package httpd

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// limiter limits the connections in total and per source. When a limit is reached, a new connection is accepted and another
// one is closed: one of the same source if that has its share, else one of the source with the most. Connections without
// a request are closed first, the oldest before others.
type limiter struct {
	total, share int

	mu      sync.Mutex
	open    map[*conn]struct{}
	sources map[netip.Addr]int
	turn    uint64 // counter of events, which orders connections by age
}

func newLimiter(total, share int) *limiter {
	return &limiter{total: total, share: share, open: map[*conn]struct{}{}, sources: map[netip.Addr]int{}}
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	limiter *limiter
	from    netip.Addr
	// since is the turn in which it was accepted, or in which its last request began or ended; requests is the number of
	// requests in progress. limiter.mu guards both.
	since    uint64
	requests int
}

// enter accepts c, and closes another connection if a limit is reached.
func (d *limiter) enter(c net.Conn) *conn {
	one := &conn{Conn: c, limiter: d, from: sourceOf(c.RemoteAddr())}
	d.mu.Lock()
	var replaced *conn
	switch {
	case d.sources[one.from] >= d.share:
		replaced = d.oldest(func(o *conn) bool { return o.from == one.from })
	case len(d.open) >= d.total:
		replaced = d.oldest(d.busiest())
	}
	d.remove(replaced)
	d.turn++
	one.since = d.turn
	d.open[one] = struct{}{}
	d.sources[one.from]++
	d.mu.Unlock()
	replaced.reset()
	return one
}

// busiest returns a function that reports whether a connection is of a source with the most connections.
func (d *limiter) busiest() func(*conn) bool {
	most := 0
	for _, n := range d.sources {
		most = max(most, n)
	}
	return func(c *conn) bool { return d.sources[c.from] == most }
}

// oldest is the connection to close first among those that meant selects; nil if there is none.
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

// reset closes a connection and discards its unsent data; nil: no connection.
func (c *conn) reset() {
	if c == nil {
		return
	}
	c.discardUnsent()
	_ = c.Conn.Close() // the connection is discarded
}

// discardUnsent makes the kernel discard unsent data when the connection is closed.
func (c *conn) discardUnsent() {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}

// Write writes to the connection. After an error the connection is closed, and the kernel would keep the unsent data as long
// as the client does not read it.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.discardUnsent()
	}
	return n, err
}

// Close closes the connection and frees its place.
func (c *conn) Close() error {
	c.limiter.mu.Lock()
	c.limiter.remove(c)
	c.limiter.mu.Unlock()
	return c.Conn.Close()
}

// count counts the start (1) or the end (-1) of a request.
func (c *conn) count(n int) {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.requests += n
	c.limiter.turn++
	c.since = c.limiter.turn
}

type connKey struct{}

// connContext is http.Server.ConnContext: it adds the connection to the context of requests.
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

// limiterListener accepts connections through a limiter.
type limiterListener struct {
	net.Listener
	limiter *limiter
	space   *space
}

// Accept accepts every connection; the limiter may close another one.
func (l limiterListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.space.limit(c)
	return l.limiter.enter(c), nil
}

// sourceOf is the source of a connection: an IPv4 address, an IPv6 /64, or one source for all UNIX sockets.
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
