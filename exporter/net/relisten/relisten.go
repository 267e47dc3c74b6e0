// Package relisten is a TCP listener that outlives its interface. One for a link-local address is bound to the number of an
// interface (ipv6(7)), which no later interface of that name has: a VPN or a container may delete its interface and make it
// again.
package relisten

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/net/listen"
)

// renewEvery is how often the listener of a link-local address looks whether its interface is there.
const renewEvery = time.Second

// Listener is a net.Listener of TCP.
type Listener struct {
	config  net.ListenConfig
	network string

	mu      sync.Mutex
	current *net.TCPListener // nil: this host does not have the address yet
	// bound is the interface of a link-local address; nil for any other address.
	bound  *net.Interface
	closed bool

	// address is what a pending Listener waits for, until closing.
	address string
	closing chan struct{}
	failed  func(error)
}

// Listen listens on an address of a TCP network.
func Listen(ctx context.Context, config net.ListenConfig, network, address string) (*Listener, error) {
	l := &Listener{config: config, network: network}
	at, err := netip.ParseAddrPort(address)
	zone := at.Addr().Zone()
	if err == nil && zone != "" {
		if l.bound, err = hostport.InterfaceOf(zone); err != nil {
			return nil, fmt.Errorf("listen %s %s: %w", network, address, err)
		}
		address = netip.AddrPortFrom(hostport.Numbered(at.Addr()), at.Port()).String()
	}
	made, err := config.Listen(ctx, network, address)
	if op, ok := errors.AsType[*net.OpError](err); ok && zone != "" {
		op.Addr = net.TCPAddrFromAddrPort(at) // with the name
	}
	if err != nil {
		return nil, err // it has the address
	}
	l.current = made.(*net.TCPListener)
	return l, nil
}

// Pending is a Listener on an address that this host does not have yet: a virtual address of a pair of hosts, an interface that is
// not up. Await and Accept try to listen every few seconds. They call failed when the reason why it cannot listen changes from the
// absence of the address to another one.
func Pending(config net.ListenConfig, network, address string, failed func(error)) *Listener {
	return &Listener{config: config, network: network, address: address, closing: make(chan struct{}), failed: failed}
}

// Listens reports whether the Listener is not pending any more.
func (l *Listener) Listens() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current != nil
}

// Await waits until the Listener listens; false: ctx has ended, or it was closed while it was pending.
func (l *Listener) Await(ctx context.Context) bool {
	absent := true
	for !l.Listens() {
		select {
		case <-ctx.Done():
			return false
		case <-l.closing:
			return false
		case <-time.After(listen.RetryInterval): // the appearance of an address has no event here
		}
		made, err := Listen(ctx, l.config, l.network, l.address)
		if err != nil {
			before := absent
			if absent = hostport.Absent(err); before && !absent {
				l.failed(err)
			}
			continue
		}
		l.mu.Lock()
		if l.closed || l.current != nil {
			_ = made.Close() // another call was first, or Close
		} else {
			l.current, l.bound = made.current, made.bound
		}
		l.mu.Unlock()
	}
	return true
}

// Accept returns the next connection, possibly of a new socket.
func (l *Listener) Accept() (net.Conn, error) {
	if !l.Await(context.Background()) {
		return nil, net.ErrClosed
	}
	for {
		l.mu.Lock()
		now, bound := l.current, l.bound != nil
		l.mu.Unlock()
		if bound {
			_ = now.SetDeadline(time.Now().Add(renewEvery)) // fails only after Close, as Accept does
		}
		c, err := now.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return c, err
		}
		l.renew()
	}
}

// renew listens again if the interface has another number now. After an error the old socket remains until the next call.
func (l *Listener) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := net.InterfaceByName(l.bound.Name)
	if l.closed || err != nil || now.Index == l.bound.Index {
		return
	}
	// By its number, as in Listen.
	at := l.current.Addr().(*net.TCPAddr).AddrPort()
	at = netip.AddrPortFrom(at.Addr().WithZone(strconv.Itoa(now.Index)), at.Port())
	next, err := l.config.Listen(context.Background(), l.network, at.String())
	if err != nil {
		return
	}
	_ = l.current.Close() // its interface is gone
	l.current, l.bound = next.(*net.TCPListener), now
}

// Addr is the address, with the port that the kernel chose. The kernel returns no interface of a listening socket of MPTCP, which
// Go opens by default.
func (l *Listener) Addr() net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		at, _ := netip.ParseAddrPort(l.address) // a name is not pending
		return net.TCPAddrFromAddrPort(at)
	}
	at := *l.current.Addr().(*net.TCPAddr)
	if l.bound != nil {
		at.Zone = l.bound.Name
	}
	return &at
}

// Close ends Accept with net.ErrClosed.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil && !l.closed {
		l.closed = true
		close(l.closing)
	}
	if l.closed = true; l.current == nil {
		return nil
	}
	return l.current.Close()
}
