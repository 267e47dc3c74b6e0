package tstamp

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"oneway.example/tests/namespace"
)

const localLinkLocal, remoteLinkLocal = "fe80::a", "fe80::b"

// The interfaces of a link.
const localName, remoteName = "near", "far"

// newLinkLocalLink is a link whose ends also have link-local addresses that are known.
func newLinkLocalLink(t *testing.T) link {
	t.Helper()
	l := newLink(t)
	namespace.Up(t, l.Local, localName, localLinkLocal+"/64")
	namespace.Up(t, l.Remote, remoteName, remoteLinkLocal+"/64")
	return l
}

// connect makes the interfaces again.
func (l link) connect(t *testing.T) {
	t.Helper()
	namespace.Veth(t, l.Local, localName, l.Remote, remoteName, 0)
	namespace.Up(t, l.Local, localName, l.LocalAddr.String()+"/24", localLinkLocal+"/64")
	namespace.Up(t, l.Remote, remoteName, l.RemoteAddr.String()+"/24", remoteLinkLocal+"/64")
}

// disconnect deletes them.
func (l link) disconnect(t *testing.T) {
	t.Helper()
	namespace.Do(t, l.Local, func() {
		near, err := netlink.LinkByName(localName)
		check(t, err)
		check(t, netlink.LinkDel(near))
	})
}

// TestLinkLocalAddressRepliesToAnotherScope: a host uses a global address towards a link-local one while its own is not valid yet, or a
// duplicate, and where "local" is set.
func TestLinkLocalAddressRepliesToAnotherScope(t *testing.T) {
	l := newLinkLocalLink(t)
	namespace.Up(t, l.Local, localName, "fd00::a/64")
	namespace.Up(t, l.Remote, remoteName, "fd00::b/64")
	near, far := l.open(t, l.Local, netip.MustParseAddr("fd00::a"), Options{}), l.open(t, l.Remote, netip.IPv6Unspecified(), Options{})
	to := netip.AddrPortFrom(netip.MustParseAddr(remoteLinkLocal+"%"+localName), far.LocalAddr().Port())
	_, err := near.Send([]Out{{Payload: []byte{1}, Peer: to}})
	check(t, err)
	b := NewBatch(1, 64)
	check(t, far.Receive(b))
	in := b.In[0]
	if want := netip.MustParseAddr(remoteLinkLocal + "%" + remoteName); in.Local != want {
		t.Errorf("received at %v, want %v", in.Local, want)
	}
	_, err = far.Send([]Out{{Payload: []byte{2}, Peer: in.Peer, Source: in.Local}})
	check(t, err)
	check(t, near.Receive(b))
	if got := b.In[0]; got.Peer != to || got.Payload[0] != 2 {
		t.Errorf("received %v from %v, want the reply of %v", got.Payload, got.Peer, to)
	}
}

// renew calls Renew in the namespace of the local end.
func (l link) renew(t *testing.T, c *Conn) (renewed bool, err error) {
	t.Helper()
	namespace.Do(t, l.Local, func() { renewed, err = c.Renew() })
	return renewed, err
}

// echo returns every packet to its sender.
func echo(c *Conn) {
	for b := NewBatch(16, 64); c.Receive(b) == nil; {
		for i := range b.In {
			_, _ = c.Send([]Out{{Payload: b.In[i].Payload, Peer: b.In[i].Peer}})
		}
	}
}

// exchange sends packets until one returns, which Receive has to return, and its timestamp.
func exchange(t *testing.T, c *Conn, to netip.AddrPort, cookie uint64) {
	t.Helper()
	failed := time.AfterFunc(limit, func() { _ = c.Close() })
	defer failed.Stop()
	reply, stamped := false, false
	send := func() {
		if _, err := c.Send([]Out{{Payload: []byte{byte(cookie)}, Peer: to, Cookie: cookie}}); errors.Is(err, unix.ENETUNREACH) {
			time.AfterFunc(10*time.Millisecond, func() { // duplicate address detection, or a carrier that is awaited
				_, _ = c.Send([]Out{{Payload: []byte{byte(cookie)}, Peer: to, Cookie: cookie}})
			})
		} else {
			check(t, err)
		}
	}
	again := time.AfterFunc(time.Second, send)
	defer again.Stop()
	send()
	for b := NewBatch(16, 64); !reply || !stamped; {
		check(t, c.Receive(b))
		for _, tx := range b.Tx {
			stamped = stamped || tx.Cookie == cookie
		}
		for i := range b.In {
			reply = reply || b.In[i].Payload[0] == byte(cookie)
		}
	}
}

// TestSocketOfAnInterfaceOutlivesIt: the interface that a socket is bound to, by its name or by a link-local address, is
// deleted and made again; it has another number then.
func TestSocketOfAnInterfaceOutlivesIt(t *testing.T) {
	for name, c := range map[string]struct {
		local, peer string
		device      string
	}{
		"IPv4":                     {"0.0.0.0:0", "10.77.0.2", localName},
		"IPv4, fixed port":         {"10.77.0.1:7777", "10.77.0.2", localName},
		"link-local":               {"[::]:0", remoteLinkLocal + "%" + localName, localName},
		"by the link-local source": {"[" + localLinkLocal + "%" + localName + "]:7777", remoteLinkLocal + "%" + localName, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLinkLocalLink(t)
			var local *Conn
			namespace.Do(t, l.Local, func() {
				var err error
				local, err = Open(netip.MustParseAddrPort(c.local), Options{Device: c.device})
				check(t, err)
			})
			defer func() { _ = local.Close() }()
			peer := netip.MustParseAddr(c.peer)
			remote := l.open(t, l.Remote, unspecified(peer), Options{})
			go echo(remote)
			to := netip.AddrPortFrom(peer, remote.LocalAddr().Port())
			exchange(t, local, to, 1)
			if renewed, err := l.renew(t, local); renewed || err != nil {
				t.Errorf("a socket whose interface is there was renewed: %v %v", renewed, err)
			}
			l.disconnect(t)
			if renewed, err := l.renew(t, local); renewed || !errors.Is(err, unix.ENODEV) {
				t.Errorf("without the interface: renewed %v, %v, want ENODEV", renewed, err)
			}
			if _, err := local.Send([]Out{{Peer: to}}); err == nil {
				t.Error("a packet was sent over a deleted interface")
			}
			l.connect(t)
			if renewed, err := l.renew(t, local); !renewed || err != nil {
				t.Fatalf("with the new interface: renewed %v, %v", renewed, err)
			}
			exchange(t, local, to, 2)
			if s := local.Stats(); s.Received < 2 || s.TxMissing > 0 || s.TxRejected > 0 {
				t.Errorf("counts after the renewal: %+v", s)
			}
		})
	}
}

func unspecified(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// TestWaitingReceiveContinuesAtTheRenewedSocket: it waits while the socket is replaced. The interface was renamed, and another
// one has its name.
func TestWaitingReceiveContinuesAtTheRenewedSocket(t *testing.T) {
	l := newLinkLocalLink(t)
	local := l.open(t, l.Local, netip.IPv4Unspecified(), Options{Device: localName})
	replies := make(chan byte, 16)
	go func() {
		for b := NewBatch(16, 64); local.Receive(b) == nil; {
			for i := range b.In {
				replies <- b.In[i].Payload[0]
			}
		}
	}()
	namespace.Do(t, l.Local, func() {
		near, err := netlink.LinkByName(localName)
		check(t, err)
		check(t, netlink.LinkSetDown(near))
		check(t, netlink.LinkSetName(near, "old"))
	})
	namespace.Veth(t, l.Local, localName, l.Remote, "second", 0)
	namespace.Up(t, l.Local, localName, "10.80.0.1/24")
	namespace.Up(t, l.Remote, "second", "10.80.0.2/24")
	if renewed, err := l.renew(t, local); !renewed || err != nil {
		t.Fatalf("renewed %v, %v", renewed, err)
	}
	remote := l.open(t, l.Remote, netip.MustParseAddr("10.80.0.2"), Options{})
	go echo(remote)
	_, err := local.Send([]Out{{Payload: []byte{9}, Peer: remote.LocalAddr()}})
	check(t, err)
	select {
	case got := <-replies:
		if got != 9 {
			t.Errorf("received %d", got)
		}
	case <-time.After(limit):
		t.Fatal("the waiting Receive did not return the packet of the new socket")
	}
}

// TestNumberOfAZoneIsLookedUpAgain: neither a socket that sends to link-local addresses nor one that replies to them is bound to
// an interface, and both find it by its new number.
func TestNumberOfAZoneIsLookedUpAgain(t *testing.T) {
	l := newLinkLocalLink(t)
	local, remote := l.open(t, l.Local, netip.IPv6Unspecified(), Options{}), l.open(t, l.Remote, netip.IPv6Unspecified(), Options{})
	go echo(remote)
	to := netip.AddrPortFrom(netip.MustParseAddr(remoteLinkLocal+"%"+localName), remote.LocalAddr().Port())
	exchange(t, local, to, 1)
	for cookie := range uint64(2) {
		l.disconnect(t)
		if _, err := local.Send([]Out{{Peer: to}}); cookie == 0 && err == nil {
			t.Error("a packet was sent over a deleted interface")
		}
		l.connect(t)
		exchange(t, local, to, 2+cookie)
	}
	if _, err := local.Send([]Out{{Peer: netip.MustParseAddrPort("[fe80::b%nosuch]:9")}}); !errors.Is(err, unix.ENODEV) {
		t.Errorf("a packet to a zone without interface: %v, want ENODEV", err)
	}
}

// TestZoneByNumberIsTheInterface: RFC 4007 section 11.2 permits a number.
func TestZoneByNumberIsTheInterface(t *testing.T) {
	l := newLinkLocalLink(t)
	c := l.open(t, l.Local, netip.IPv6Unspecified(), Options{})
	var number int
	namespace.Do(t, l.Local, func() {
		near, err := netlink.LinkByName(localName)
		check(t, err)
		number = near.Attrs().Index
	})
	for given, want := range map[string]string{
		"[fe80::b%" + strconv.Itoa(number) + "]:862": "[fe80::b%near]:862", "[fe80::b%near]:862": "[fe80::b%near]:862",
		"[fe80::b%77]:862": "[fe80::b%77]:862", "[fe80::b%nosuch]:1": "[fe80::b%nosuch]:1",
		"[::ffff:192.0.2.1]:862": "192.0.2.1:862", "192.0.2.1:862": "192.0.2.1:862",
	} {
		if got := c.Known(netip.MustParseAddrPort(given)); got.String() != want {
			t.Errorf("%s is known as %s, want %s", given, got, want)
		}
	}
}

func TestZoneWithoutAnInterfaceIsNamed(t *testing.T) {
	c, err := Open(netip.MustParseAddrPort("[fe80::a%nosuch]:0"), Options{})
	if want := "tstamp: open [fe80::a%nosuch]:0: this host has no interface nosuch"; !errors.Is(err, unix.ENODEV) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, %v; want %q", c, err, want)
	}
}
