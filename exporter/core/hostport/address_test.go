package hostport

import (
	"net/netip"
	"strings"
	"testing"
)

// TestAddressThatNoHostHasIsRefused: packets to it are lost, or go to the wrong hosts, and the reason would blame the other end.
func TestAddressThatNoHostHasIsRefused(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "", "127.0.0.1": "", "169.254.0.1": "", "2001:db8::1": "", "::1": "", "fe80::1%eth0": "", "fe80::1%2": "", "240.0.0.1": "", "fc00::1": "", "::ffff:192.0.2.1": "",
		"0.0.0.0": "means no host", "::": "means no host", "::ffff:0.0.0.0": "means no host", "::%eth0": "means no host",
		"224.0.0.5": "multicast", "239.255.255.255": "multicast", "ff02::1": "multicast", "ff02::1%eth0": "multicast", "ff05::2": "multicast", "::ffff:224.0.0.1": "multicast",
		"255.255.255.255": "broadcast", "::ffff:255.255.255.255": "broadcast",
		"::ffff:127.0.0.1%eth0": "write 127.0.0.1", "::ffff:169.254.0.1%eth0": "write 169.254.0.1", "fe80::1%0": "number 0", "fe80::1%00": "number 0", "fe80::1%": "interface after the % is missing",
		"0.1.2.3": "means no host", "0.255.255.255": "means no host", "::ffff:0.1.2.3": "means no host",
		"fe80::1%e0%e0": "write fe80::1%e0", "fe80::1": "such as fe80::1%eth0", "febf::1": "such as febf::1%eth0", "2001:db8::1%eth0": "write 2001:db8::1", "::1%lo": "write ::1",
	} {
		for _, text := range []string{address, "[" + address + "]", "[" + address + "]:862"} {
			if !strings.Contains(address, ":") {
				text = strings.NewReplacer("[", "", "]", "").Replace(text)
			}
			host, _, err := Split(text, 7)
			if want == "" && (err != nil || host != address) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %q, %v; want %q", text, host, err, want)
			}
		}
	}
}

func TestZoneMustBeAnInterfaceOfThisHost(t *testing.T) {
	for address, want := range map[string]string{
		"fe80::1%lo": "", "fe80::1%1": "", "2001:db8::1": "", "192.0.2.1": "",
		"fe80::1%+1": "this host has no interface +1", "fe80::1%25lo": "this host has no interface 25lo; %25 is the spelling in a URL: write fe80::1%lo",
		"fe80::1%nosuch": "this host has no interface nosuch", "fe80::1%4000000": "this host has no interface 4000000",
	} {
		if err := CheckZone(netip.MustParseAddr(address)); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v; want %q", address, err, want)
		}
	}
}

// TestRouteCommandTakesAZoneAsDevice: iproute2 refuses an address with a zone.
func TestRouteCommandTakesAZoneAsDevice(t *testing.T) {
	for to, want := range map[string]string{"192.0.2.7": "ip route get 192.0.2.7", "2001:db8::7": "ip route get 2001:db8::7", "fe80::b%e0": "ip route get fe80::b dev e0"} {
		if got := RouteCommand(netip.MustParseAddr(to)); got != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
	}
}
