package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
)

// Host is one end of the network: a namespace with the interfaces lo, wan0
// (through the link) and lan0 (unimpaired).
type Host struct {
	// Name is client or server.
	Name string
	// Addr4 and Addr6 are on wan0, LAN4 and LAN6 on lan0.
	Addr4, Addr6, LAN4, LAN6 netip.Addr

	space namespace
}

// Do runs f on a thread inside the namespace and returns its error. Sockets
// that f opens stay in the namespace and can be used anywhere; goroutines that
// f starts run outside. f must not call t.FailNow.
func (h *Host) Do(f func() error) error { return h.space.do(f) }

// Command makes a command that runs inside the namespace. Start it as any
// other; it has the process id of the command itself (nsenter replaces itself).
func (h *Host) Command(name string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", h.enter(name, args)...)
}

// CommandContext is Command with a context, as exec.CommandContext.
func (h *Host) CommandContext(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", h.enter(name, args)...)
}

func (h *Host) enter(name string, args []string) []string {
	return append([]string{"--net=" + h.Path(), "--", name}, args...)
}

// Path names the namespace for nsenter --net= from any process of the same
// user, while this process runs and the Lab is not closed.
func (h *Host) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), h.space.file.Fd())
}

// Shell is the command that enters the namespace from another terminal.
func (h *Host) Shell() string {
	if os.Getenv(inside) == "" {
		return "nsenter --net=" + h.Path()
	}
	return fmt.Sprintf("nsenter --user=/proc/%d/ns/user --preserve-credentials --net=%s", os.Getpid(), h.Path())
}

// DialContext connects from inside the namespace, for http.Transport and the
// like. The address must be an IP address and port: names are looked up outside.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("lab: dial from %s: %w", h.Name, err)
	}
	var c net.Conn
	err := h.Do(func() (err error) {
		c, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// Publish makes a TCP server inside the namespace reachable from outside: it
// listens on the address outside (such as 127.0.0.1:0) and forwards connections
// to the address inside. It returns its listening address; stop ends it and all its
// connections.
func (h *Host) Publish(outside, inside string) (at netip.AddrPort, stop func(), err error) {
	listener, err := net.Listen("tcp", outside)
	if err != nil {
		return netip.AddrPort{}, nil, fmt.Errorf("lab: publish: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { h.relay(ctx, c, inside) })
		}
	})
	stop = func() {
		cancel()
		_ = listener.Close()
		wg.Wait()
	}
	return listener.Addr().(*net.TCPAddr).AddrPort(), stop, nil
}

// relay copies both ways until either side ends or ctx does.
func (h *Host) relay(ctx context.Context, outer net.Conn, inside string) {
	defer func() { _ = outer.Close() }()
	inner, err := h.DialContext(ctx, "tcp", inside)
	if err != nil {
		return // the client sees its connection closed
	}
	defer func() { _ = inner.Close() }()
	defer context.AfterFunc(ctx, func() {
		_ = outer.Close()
		_ = inner.Close()
	})()
	var wg sync.WaitGroup
	wg.Go(func() { pass(inner, outer) })
	pass(outer, inner)
	wg.Wait()
}

// pass copies, and forwards the end of the stream.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(*net.TCPConn)
	if ok && (err == nil || errors.Is(err, io.EOF)) {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
	_ = from.Close()
}
