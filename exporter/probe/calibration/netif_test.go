package calibration

import (
	"net"
	"net/netip"
	"testing"
)

// own lists the addresses of this host by interface.
func own(t *testing.T) map[netip.Addr]*net.Interface {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	found := map[netip.Addr]*net.Interface{}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addrs {
			addr := netip.MustParsePrefix(a.String()).Addr()
			if addr.IsLinkLocalUnicast() && addr.Is6() {
				addr = addr.WithZone(i.Name)
			}
			found[addr] = &i
		}
	}
	if len(found) == 0 {
		t.Fatal("this host has no address, not even 127.0.0.1: nothing can be tested")
	}
	return found
}

func TestEveryAddressOfThisHostHasItsInterface(t *testing.T) {
	for addr, i := range own(t) {
		if name, err := InterfaceOf(addr); err != nil || name != i.Name {
			t.Errorf("%v: %q, %v, want %q", addr, name, err, i.Name)
		}
		if addr.Is4() {
			if name, err := InterfaceOf(netip.AddrFrom16(addr.As16())); err != nil || name != i.Name {
				t.Errorf("%v in IPv6: %q, %v", addr, name, err)
			}
		}
	}
}

func TestAnAddressOfNoInterfaceIsAnError(t *testing.T) {
	for _, text := range []string{"0.0.0.0", "::", "192.0.2.77", "2001:db8::77", "fe80::1%none"} {
		if name, err := InterfaceOf(netip.MustParseAddr(text)); err == nil {
			t.Errorf("%s: %q", text, name)
		}
	}
	if name, err := InterfaceOf(netip.Addr{}); err == nil {
		t.Errorf("invalid: %q", name)
	}
}

func TestPacketsToOwnAddressesPassLoopback(t *testing.T) {
	want, err := InterfaceOf(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	for addr := range own(t) {
		if name, err := InterfaceTo(t.Context(), addr, netip.AddrPortFrom(addr, 862)); err != nil || name != want {
			t.Errorf("%v: %q, %v, want %q", addr, name, err, want)
		}
	}
	if name, err := InterfaceTo(t.Context(), netip.Addr{}, netip.MustParseAddrPort("127.8.9.10:862")); err != nil || name != want {
		t.Errorf("127.8.9.10: %q, %v", name, err)
	}
}

func TestInterfaceToIsThatOfTheSourceAddress(t *testing.T) {
	remote := netip.MustParseAddrPort("192.0.2.77:862")
	for addr, i := range own(t) {
		if name, err := InterfaceTo(t.Context(), addr, remote); err != nil || name != i.Name {
			t.Errorf("%v: %q, %v, want %q", addr, name, err, i.Name)
		}
	}
	name, err := InterfaceTo(t.Context(), netip.IPv4Unspecified(), remote)
	if err == nil { // there is a route; the interface must exist
		_, err = net.InterfaceByName(name)
		if err != nil {
			t.Error(err)
		}
	} else {
		t.Logf("no route to a network for documentation: %v", err)
	}
}

func TestDriverOfLoopbackIsNamedSo(t *testing.T) {
	name, err := InterfaceOf(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	if d := DriverOf(name); d != "loopback" {
		t.Errorf("%q", d)
	}
	if d := DriverOf("no such one"); d != "" {
		t.Errorf("%q", d)
	}
	if s := ThisSystem(); s.Host == "" || s.Kernel == "" {
		t.Errorf("%+v", s)
	}
}
