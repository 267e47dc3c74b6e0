package source

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"oneway.example/tests/await"
	"oneway.example/tests/namespace"
)

// host is the local end of a link, whose interface is called near.
type host struct {
	t    *testing.T
	pair namespace.Pair
}

func newHost(t *testing.T) host {
	h := host{t, namespace.NewPair(t)}
	h.ip("address add fe80::a/64 dev near nodad", "link add other type veth peer name beyond", "link set beyond up", "link set other up")
	return h
}

// ip runs commands of ip(8).
func (h host) ip(commands ...string) {
	h.t.Helper()
	for _, c := range commands {
		namespace.Do(h.t, h.pair.Local, func() {
			if said, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
				h.t.Fatalf("ip %s: %v: %s", c, err, said)
			}
		})
	}
}

func (h host) open(device string) (c *Checker) {
	h.t.Helper()
	namespace.Do(h.t, h.pair.Local, func() {
		var err error
		c, err = Open(device)
		namespace.Check(h.t, err)
	})
	h.t.Cleanup(c.Close)
	return c
}

// tentative makes duplicate address detection of the interface's new addresses last.
func (h host) tentative() {
	h.t.Helper()
	namespace.Do(h.t, h.pair.Local, func() {
		for name, value := range map[string]string{"accept_dad": "1", "dad_transmits": "100"} {
			namespace.Check(h.t, os.WriteFile("/proc/sys/net/ipv6/conf/near/"+name, []byte(value), 0))
		}
	})
}

// TestAddressThatRepliesDoNotReachIsAnError: in each of these cases without an error the kernel sends from an address that is of use, or
// refuses the packet.
func TestAddressThatRepliesDoNotReachIsAnError(t *testing.T) {
	const none4, none6 = "has no usable IPv4 address", "has no usable IPv6 address"
	deviceless := "address del 10.77.0.1/24 dev near"
	for name, c := range map[string]struct {
		change              []string
		dad                 bool
		device, local, peer string
		want                string
	}{
		"interface":                        {device: "near", peer: "10.77.0.2"},
		"any interface":                    {peer: "10.77.0.2"},
		"loopback":                         {peer: "127.0.0.1"},
		"loopback, IPv6":                   {peer: "::1"},
		"local":                            {local: "10.77.0.1", peer: "10.77.0.2"},
		"local in a range":                 {local: "127.0.0.9", peer: "127.0.0.1"},
		"local, IPv6":                      {local: "fd77::1", peer: "fd77::2"},
		"interface, IPv6":                  {device: "near", peer: "fd77::2"},
		"link-local":                       {peer: "fe80::b%near"},
		"absent interface":                 {device: "none", peer: "10.77.0.2"},
		"no route":                         {peer: "192.0.2.1"},
		"interface without address":        {[]string{deviceless}, false, "near", "", "10.77.0.2", none4 + " on interface near"},
		"interface, address of another":    {[]string{deviceless, "address add 10.88.0.1/24 dev other"}, false, "near", "", "10.77.0.2", "the kernel takes 10.88.0.1 of another interface"},
		"interface that borrows":           {[]string{deviceless, "address add 10.88.0.1/24 dev other", "route add 10.77.0.0/24 dev near"}, false, "near", "", "10.77.0.2", ""},
		"address of another, by the route": {[]string{deviceless, "address add 10.88.0.1/24 dev other", "route add 10.77.0.0/24 dev near"}, false, "", "", "10.77.0.2", ""},
		"no address, refused":              {[]string{deviceless}, false, "", "", "10.77.0.2", ""},
		"local is gone":                    {[]string{deviceless}, false, "", "10.77.0.1", "10.77.0.2", "does not have the address 10.77.0.1"},
		"local has moved":                  {[]string{deviceless, "address add 10.77.0.1/24 dev other"}, false, "", "10.77.0.1", "10.77.0.2", ""},
		"local is gone, IPv6":              {[]string{"address del fd77::1/64 dev near"}, false, "", "fd77::1", "fd77::2", "does not have the address fd77::1"},
		"link-local source is gone":        {[]string{"address del fe80::a/64 dev near"}, false, "", "fe80::a%near", "fe80::b%near", "does not have the address fe80::a%near"},
		"link-local source has moved":      {[]string{"address del fe80::a/64 dev near", "address add fe80::a/64 dev other nodad"}, false, "", "fe80::a%near", "fe80::b%near", "does not have the address fe80::a%near"},
		"its interface is gone":            {[]string{"link set near down", "link set near name gone", "link set gone up", "address add fe80::a/64 dev gone nodad"}, false, "", "fe80::a%near", "fe80::b%near", "does not have the address fe80::a%near"},
		"only tentative":                   {[]string{"address flush dev near scope global", "address add fd77::9/64 dev near"}, true, "", "", "fd77::2", ""},
		"tentative local":                  {[]string{"address add fd77::9/64 dev near"}, true, "", "fd77::9", "fd77::2", "must not use its address fd77::9 yet"},
		"nothing but tentative":            {[]string{"-6 address flush dev near", "address add fd77::9/64 dev near", "-6 route replace fd77::/64 dev near"}, true, "", "", "fd77::2", none6},
		"interface, nothing but tentative": {[]string{"-6 address flush dev near", "address add fd77::9/64 dev near", "-6 route replace fd77::/64 dev near"}, true, "near", "", "fd77::2", none6},
		"link-local, by a router":          {[]string{"address del fd77::1/64 dev near", "-6 route add 2001:db8::/32 via fe80::b dev near"}, false, "", "", "2001:db8::1", "other than the link-local fe80::"},
		"link-local, on the link":          {[]string{"address del fd77::1/64 dev near", "-6 route add 2001:db8::/32 dev near"}, false, "", "", "2001:db8::1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			if c.dad {
				h.tentative()
			}
			h.ip(c.change...)
			var local netip.Addr
			if c.local != "" {
				local = netip.MustParseAddr(c.local)
			}
			err := h.open(c.device).Check(local, netip.MustParseAddr(c.peer))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestOnlyLostAddressesAreChanges: those that are added or renewed give no reason to check peers that can be reached.
func TestOnlyLostAddressesAreChanges(t *testing.T) {
	h := newHost(t)
	c := h.open("")
	for _, step := range []struct {
		command string
		want    bool
	}{
		{"link show", false},
		{"address add 10.99.0.1/24 dev near", false},
		{"address change fd77::1/64 dev near valid_lft 1000 preferred_lft 900", false},
		{"address del 10.99.0.1/24 dev near", true},
		{"link show", false},
		{"link set near down", true}, // its IPv6 addresses are gone
		{"link show", false},
	} {
		h.ip(step.command)
		if got := c.Changed(); got != step.want {
			t.Errorf("ip %s: changed %v, want %v", step.command, got, step.want)
		}
	}
	h.tentative()
	h.ip("link set near up", "address add fd77::9/64 dev near")
	await.That(t, "a tentative address", c.Changed)
	c.Close()
	if c.Changed() || c.Check(netip.MustParseAddr("fd77::9"), netip.MustParseAddr("fd77::2")) != nil {
		t.Error("a closed checker reports a change or an error")
	}
}
