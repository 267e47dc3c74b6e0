package httpd

import (
	"net"
	"net/netip"
	"slices"
	"testing"
)

// testClient is a connection that has an address and records its end.
type testClient struct {
	net.Conn
	from string
	gone bool
}

func (v *testClient) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(v.from), 1))
}

func (v *testClient) Close() error {
	v.gone = true
	return nil
}

func TestNewConnectionReplacesTheOldestOfTheBusiestSource(t *testing.T) {
	for _, c := range []struct {
		name   string
		total  int
		from   []string
		busy   []int // with a request in progress
		served []int // with a request since then, in this order
		gone   []int
	}{
		{name: "room", total: 4, from: []string{"192.0.2.1", "192.0.2.1", "192.0.2.2"}},
		{name: "own share", total: 9, from: []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.1"}, gone: []int{0}},
		{name: "a request is kept", total: 9, from: []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1"}, busy: []int{0}, gone: []int{1}},
		{name: "one that takes long, too", total: 9, from: []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1"}, busy: []int{0}, served: []int{2, 1}, gone: []int{2}},
		{name: "unless all have one", total: 9, from: []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1"}, busy: []int{1, 0, 2}, gone: []int{1}},
		{name: "used lately", total: 9, from: []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1"}, served: []int{0}, gone: []int{1}},
		{name: "full", total: 4, from: []string{"192.0.2.2", "192.0.2.1", "192.0.2.1", "192.0.2.3", "192.0.2.4"}, gone: []int{1}},
		{name: "full of busy ones", total: 3, from: []string{"192.0.2.2", "192.0.2.1", "192.0.2.1", "192.0.2.4"}, busy: []int{2, 1}, gone: []int{2}},
		{name: "one network of IPv6", total: 9, from: []string{"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1", "2001:db8::4"}, gone: []int{0}},
		{name: "IPv4 in IPv6", total: 9, from: []string{"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"}, gone: []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newLimiter(c.total, 3)
			var all []*testClient
			var inside []*conn
			for i, from := range c.from {
				if i == len(c.from)-1 {
					for _, n := range c.busy {
						inside[n].count(1)
					}
					for _, n := range c.served {
						inside[n].count(1)
						inside[n].count(-1)
					}
				}
				all = append(all, &testClient{from: from})
				inside = append(inside, d.enter(all[i]))
			}
			var replaced []int
			for i, v := range all {
				if v.gone {
					replaced = append(replaced, i)
				}
			}
			if !slices.Equal(replaced, c.gone) {
				t.Errorf("closed were %v, want %v", replaced, c.gone)
			}
			for _, one := range inside { // some are closed twice
				_ = one.Close()
			}
			if len(d.open) != 0 || len(d.sources) != 0 {
				t.Errorf("%d connections of %d sources are left", len(d.open), len(d.sources))
			}
		})
	}
}
