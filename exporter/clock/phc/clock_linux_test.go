package phc

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"oneway.example/tests/namespace"
)

func TestInterfacesWithoutAClockAreRefused(t *testing.T) {
	for name, want := range map[string]string{"lo": "has no PTP clock", "no-such-link": "interface no-such-link does not exist"} {
		if c, err := Start(name, discarded); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Start(%s) = %v, %v", name, c, err)
		}
	}
}

// TestVirtualInterfaceIsRefused tests an interface whose driver supports the request, unlike loopback.
func TestVirtualInterfaceIsRefused(t *testing.T) {
	namespace.Do(t, namespace.New(t), func() {
		pair := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "far"}
		pair.Name = "near"
		if err := netlink.LinkAdd(pair); err != nil {
			t.Skipf("SKIPPED, NOT PASSED: this kernel makes no veth pair: %v", err)
		}
		if c, err := Start("near", discarded); err == nil || !strings.Contains(err.Error(), "interface near has no PTP clock") {
			t.Errorf("Start(near) = %v, %v, want no PTP clock", c, err)
		}
	})
}
