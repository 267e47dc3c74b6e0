package hostport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Errors of CheckHost.
var (
	errUnspecified = errors.New("this address means no host; write the address of the host, such as 192.0.2.1 (127.0.0.1 or ::1 is this host)")
	errBroadcast   = errors.New("this is a broadcast address; write the address of one host, such as 192.0.2.1")
	errMulticast   = errors.New("this is a multicast address; write the address of one host, such as 192.0.2.1")
)

// CheckHost reports an address that no host has: unspecified, broadcast (RFC 919), or multicast; and a zone that is missing or has
// no meaning (RFC 4007 section 11). It does not depend on this host: see CheckZone.
func CheckHost(a netip.Addr) error {
	a = a.Unmap()
	switch {
	case a.WithZone("").IsUnspecified():
		return errUnspecified
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return errBroadcast
	case a.IsMulticast():
		return errMulticast
	case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		return fmt.Errorf("a link-local address needs the interface of this host; write it after a %%, such as %s%%eth0", a)
	case a.Zone() != "" && !a.IsLinkLocalUnicast():
		return fmt.Errorf("only a link-local address has an interface; write %s", a.WithZone(""))
	}
	return nil
}

// CheckZone reports a zone that is neither the name nor the number of an interface of this host: the kernel would send by any.
func CheckZone(a netip.Addr) error {
	zone := a.Zone()
	if zone == "" {
		return nil
	}
	_, err := net.InterfaceByName(zone)
	if n, notNumber := strconv.Atoi(zone); err != nil && notNumber == nil {
		_, err = net.InterfaceByIndex(n)
	}
	if err != nil {
		return fmt.Errorf("this host has no interface %s", zone)
	}
	return nil
}
