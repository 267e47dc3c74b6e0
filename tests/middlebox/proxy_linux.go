package middlebox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"oneway.example/tests/lab"
)

// Proxy is how a box splits TCP connections.
type Proxy struct {
	// SendBuffer and ReceiveBuffer are those of its sockets; zero: the kernel sizes them.
	SendBuffer, ReceiveBuffer int
	// Chunk is the size of a read. The proxy writes what it has read before it reads more.
	Chunk int
	// KeepSource: its connection to the server has the client's address and port.
	KeepSource bool
}

// Large has buffers of its own, Small nearly none: it reads only what it can write.
func Large() Proxy { return Proxy{Chunk: 64 << 10, SendBuffer: 256 << 10, ReceiveBuffer: 256 << 10} }

// Small is a proxy nearly without buffers.
func Small() Proxy { return Proxy{Chunk: 1448, SendBuffer: 8 << 10, ReceiveBuffer: 8 << 10} }

// Split makes the box a transparent proxy of all TCP connections that begin at the client, until the test ends. It returns the
// number of connections that it has split so far.
func (p *Path) Split(t lab.TB, x Proxy) *atomic.Int64 {
	t.Helper()
	s := &splitter{Proxy: x, box: p.Box}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var l net.Listener
	must(t, p.Box.Do(func() (err error) {
		config := net.ListenConfig{Control: s.control}
		config.SetMultipathTCP(false)
		l, err = config.Listen(s.ctx, "tcp4", "0.0.0.0:0")
		return err
	}))
	p.nft(t, fmt.Sprintf(`table ip box {
		chain divert { type filter hook prerouting priority mangle;
			ip protocol tcp socket transparent 1 meta mark set 1 accept
			iifname "INSIDE" ip protocol tcp tproxy to :%d meta mark set 1 accept
		}
	}`, l.Addr().(*net.TCPAddr).Port))
	must(t, Run(p.Box, "", "ip", "rule", "add", "fwmark", "1", "lookup", "100"),
		Run(p.Box, "", "ip", "route", "add", "local", "default", "dev", "lo", "table", "100"),
		// No random offset: it is a hash of the addresses with a secret of the kernel, so that with KeepSource a proxy in the
		// client's own kernel would have the client's.
		sysctl(p.Box, "ipv4/tcp_timestamps", "2"))
	s.tasks.Go(func() { s.serve(l) })
	t.Cleanup(func() {
		s.cancel()
		_ = l.Close()
		s.tasks.Wait()
	})
	return &s.split
}

// splitter is a running Proxy.
type splitter struct {
	Proxy
	box    *lab.Host
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	split  atomic.Int64
}

// control sets the options of a socket before it is bound.
func (s *splitter) control(_, _ string, c syscall.RawConn) error {
	var errs []error
	err := c.Control(func(fd uintptr) {
		set := func(level, name, value int) { errs = append(errs, unix.SetsockoptInt(int(fd), level, name, value)) }
		set(unix.SOL_IP, unix.IP_TRANSPARENT, 1)
		set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		if s.SendBuffer > 0 {
			set(unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, s.SendBuffer)
		}
		if s.ReceiveBuffer > 0 {
			set(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, s.ReceiveBuffer)
		}
	})
	return errors.Join(append(errs, err)...)
}

func (s *splitter) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // the listening socket was closed
		}
		s.split.Add(1)
		s.tasks.Go(func() { s.relay(c.(*net.TCPConn)) })
	}
}

// relay connects to the address that the client meant, and copies both ways.
func (s *splitter) relay(client *net.TCPConn) {
	defer func() { _ = client.Close() }()
	server, err := s.dial(client)
	if err != nil {
		_ = client.SetLinger(0) // the client sees a reset
		return
	}
	defer func() { _ = server.Close() }()
	defer context.AfterFunc(s.ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})()
	var both sync.WaitGroup
	both.Go(func() { s.copy(server, client) })
	both.Go(func() { s.copy(client, server) })
	both.Wait()
}

func (s *splitter) dial(client *net.TCPConn) (server *net.TCPConn, err error) {
	d := net.Dialer{Control: s.control}
	if s.KeepSource {
		d.LocalAddr = client.RemoteAddr()
	}
	err = s.box.Do(func() error {
		c, err := d.DialContext(s.ctx, "tcp4", client.LocalAddr().String())
		if err == nil {
			server = c.(*net.TCPConn)
		}
		return err
	})
	return server, err
}

// copy passes payload and the end of the stream on, and a reset of either side to the other.
func (s *splitter) copy(to, from *net.TCPConn) {
	b := make([]byte, s.Chunk)
	for {
		n, err := from.Read(b)
		if n > 0 && err == nil {
			_, err = to.Write(b[:n])
		}
		if errors.Is(err, io.EOF) {
			_ = to.CloseWrite() // a connection that was reset has ended
			return
		}
		if err != nil {
			for _, c := range []*net.TCPConn{to, from} {
				_ = c.SetLinger(0)
				_ = c.Close()
			}
			return
		}
	}
}
