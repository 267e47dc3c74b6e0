package loadserver

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"oneway.example/tests/namespace"
)

// A listener at all addresses has no interface, and the kernel returns none for a peer whose address is not link-local. If several
// interfaces have the address, as VLANs of one interface do, it remains unknown.
func TestLinkLocalAddressOfAListenerAtAllAddressesHasItsInterface(t *testing.T) {
	pair := namespace.NewPair(t)
	everywhere := &net.TCPAddr{IP: net.IPv6unspecified}
	namespace.Do(t, pair.Local, func() {
		for _, step := range []struct{ ip, address, want string }{
			{"address add fe80::a/64 dev near nodad", "fe80::a", "near"},
			{"address add 2001:db8::a/64 dev near nodad", "2001:db8::a", ""},
			{"link set lo up", "fe80::b", ""},
			{"address add fe80::a/64 dev lo nodad", "fe80::a", ""},
		} {
			if said, err := exec.Command("ip", strings.Fields(step.ip)...).CombinedOutput(); err != nil {
				t.Errorf("ip %s: %v: %s", step.ip, err, said)
				return
			}
			if got := zoneOf(everywhere, &net.TCPAddr{IP: net.ParseIP(step.address)}); got != step.want {
				t.Errorf("after ip %s, %s has the interface %q, want %q", step.ip, step.address, got, step.want)
			}
		}
	})
}
