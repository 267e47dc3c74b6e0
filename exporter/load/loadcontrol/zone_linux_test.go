package loadcontrol

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"oneway.example/tests/namespace"
)

// TestDialFollowsTheInterfaceOfALinkLocalAddress: package net knows the number of a name for up to a minute; the interface is deleted
// and made again, with another number.
func TestDialFollowsTheInterfaceOfALinkLocalAddress(t *testing.T) {
	p := namespace.NewPair(t)
	dial := func(when string) {
		namespace.Up(t, p.Local, "near", "fe80::a/64")
		namespace.Up(t, p.Remote, "far", "fe80::b/64")
		namespace.AwaitLocal(t, p.Remote, "fd77::2")
		namespace.Do(t, p.Local, func() {
			// Nothing listens there: a packet that arrives is refused.
			if _, err := Dial(t.Context(), ClientOptions{Address: "[fe80::b%near]:8620"}); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s: %v, want a refusal", when, err)
			}
		})
	}
	dial("at first")
	namespace.Do(t, p.Local, func() {
		_, err := Dial(t.Context(), ClientOptions{Address: "[fe80::b%near]:8620", Local: netip.MustParseAddr("fe80::c%near")})
		if !errors.Is(err, syscall.EADDRNOTAVAIL) || !strings.Contains(err.Error(), "[fe80::c%near]") || !strings.Contains(err.Error(), "[fe80::b%near]:8620") {
			t.Errorf("from an address that this host does not have: %v", err)
		}
	})
	namespace.Do(t, p.Local, func() {
		near, err := netlink.LinkByName("near")
		namespace.Check(t, err)
		namespace.Check(t, netlink.LinkDel(near))
	})
	namespace.Veth(t, p.Local, "near", p.Remote, "far", 0)
	namespace.Up(t, p.Remote, "far", "fd77::2/64")
	dial("made again")
}
