package tstamp

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netns"

	"oneway.example/tests/namespace"
)

// link is two network namespaces with a veth pair between them.
type link struct{ namespace.Pair }

// newLink makes a link for the length of a test. It needs root.
func newLink(tb testing.TB) link { return link{namespace.NewPair(tb)} }

// open makes a Conn inside a namespace.
func (l link) open(tb testing.TB, ns netns.NsHandle, local netip.Addr, o Options) (c *Conn) {
	tb.Helper()
	namespace.Do(tb, ns, func() { c = open(tb, netip.AddrPortFrom(local, 0), o) })
	return c
}

func open(tb testing.TB, local netip.AddrPort, o Options) *Conn {
	tb.Helper()
	c, err := Open(local, o)
	check(tb, err)
	tb.Cleanup(func() { _ = c.Close() }) // some tests have closed it
	return c
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
