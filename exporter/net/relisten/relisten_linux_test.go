package relisten

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"oneway.example/tests/namespace"
)

const limit = 30 * time.Second // a hang

// TestListenerOutlivesItsInterface: the interface of a link-local address is deleted and made again.
func TestListenerOutlivesItsInterface(t *testing.T) {
	p := namespace.NewPair(t)
	address := func() {
		namespace.Up(t, p.Local, "near", "fe80::a/64")
		namespace.Up(t, p.Remote, "far", "fe80::b/64")
	}
	address()
	var l *Listener
	namespace.Do(t, p.Local, func() {
		var err error
		l, err = Listen(t.Context(), net.ListenConfig{}, "tcp6", "[fe80::a%near]:0")
		namespace.Check(t, err)
	})
	accepted := make(chan error, 1)
	accept := func() {
		namespace.Do(t, p.Local, func() {
			c, err := l.Accept()
			if err == nil {
				err = c.Close()
			}
			accepted <- err
		})
	}
	port := l.Addr().(*net.TCPAddr).Port
	if zone := l.Addr().(*net.TCPAddr).Zone; zone != "near" {
		t.Errorf("the address has the interface %q", zone)
	}
	connect := func() {
		t.Helper()
		ctx, end := context.WithTimeout(t.Context(), limit)
		defer end()
		for {
			var err error
			namespace.Do(t, p.Remote, func() {
				far, found := net.InterfaceByName("far")
				namespace.Check(t, found)
				var c *net.TCPConn
				if c, err = net.DialTCP("tcp6", nil, &net.TCPAddr{IP: net.ParseIP("fe80::a"), Port: port, Zone: strconv.Itoa(far.Index)}); err == nil {
					err = c.Close()
				}
			})
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				t.Fatal(err)
			case <-time.After(50 * time.Millisecond): // the listener looks once a second
			}
		}
		if err := <-accepted; err != nil {
			t.Fatal(err)
		}
	}
	go accept()
	connect()
	namespace.Do(t, p.Local, func() {
		near, err := netlink.LinkByName("near")
		namespace.Check(t, err)
		namespace.Check(t, netlink.LinkDel(near))
	})
	go accept()
	namespace.Veth(t, p.Local, "near", p.Remote, "far", 0)
	address()
	connect()
	if got := l.Addr().(*net.TCPAddr).Port; got != port {
		t.Errorf("port %d, want %d", got, port)
	}
	go accept()
	namespace.Check(t, l.Close())
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
}

// TestListenFollowsTheInterfaceOfALinkLocalAddress: package net knows the number of a name for up to a minute.
func TestListenFollowsTheInterfaceOfALinkLocalAddress(t *testing.T) {
	p := namespace.NewPair(t)
	for _, when := range []string{"at first", "made again"} {
		namespace.Up(t, p.Local, "near", "fe80::a/64")
		namespace.Do(t, p.Local, func() {
			l, err := Listen(t.Context(), net.ListenConfig{}, "tcp6", "[fe80::a%near]:0")
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			namespace.Check(t, l.Close())
			near, err := netlink.LinkByName("near")
			namespace.Check(t, err)
			namespace.Check(t, netlink.LinkDel(near))
		})
		namespace.Veth(t, p.Local, "near", p.Remote, "far", 0)
	}
}

// TestZoneWithoutAnInterfaceIsNamed: the kernel says only that the address is invalid.
func TestZoneWithoutAnInterfaceIsNamed(t *testing.T) {
	for _, zone := range []string{"nosuch", "4000000"} {
		l, err := Listen(t.Context(), net.ListenConfig{}, "tcp", "[fe80::a%"+zone+"]:0")
		if want := "listen tcp [fe80::a%" + zone + "]:0: this host has no interface " + zone; err == nil || err.Error() != want || !errors.Is(err, syscall.ENODEV) {
			t.Errorf("%v, %v; want %q", l, err, want)
		}
	}
}

func TestPendingListenerListensWhenTheHostGetsItsAddress(t *testing.T) {
	var l *Listener
	p := namespace.NewPair(t)
	accepted := make(chan error, 1)
	refused := make(chan error, 1)
	l = Pending(net.ListenConfig{}, "tcp", "192.0.2.77:9862", func(err error) { refused <- err })
	go func() {
		namespace.Do(t, p.Local, func() {
			c, err := l.Accept()
			if err == nil {
				err = c.Close()
			}
			accepted <- err
		})
	}()
	if at := l.Addr().String(); at != "192.0.2.77:9862" {
		t.Errorf("waits for %s", at)
	}
	namespace.Up(t, p.Local, "near", "192.0.2.77/32")
	var other net.Listener
	namespace.Do(t, p.Local, func() {
		var err error
		other, err = net.Listen("tcp", "192.0.2.77:9862")
		namespace.Check(t, err)
	})
	select {
	case err := <-refused:
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("another program listens there: %v", err)
		}
	case <-time.After(limit):
		t.Error("nothing is said of an address that another program has")
	}
	namespace.Check(t, other.Close())
	namespace.Do(t, p.Local, func() {
		ctx, end := context.WithTimeout(t.Context(), limit)
		defer end()
		if l.Listens() || !l.Await(ctx) || !l.Listens() {
			t.Fatal("it does not listen")
		}
	})
	namespace.Do(t, p.Local, func() {
		c, err := net.Dial("tcp", "192.0.2.77:9862")
		namespace.Check(t, err)
		namespace.Check(t, c.Close())
	})
	if err := <-accepted; err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	closed := Pending(net.ListenConfig{}, "tcp", "203.0.113.1:9862", nil)
	if err := errors.Join(closed.Close(), closed.Close()); err != nil {
		t.Error(err)
	}
	if _, err := closed.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, want net.ErrClosed", err)
	}
}
