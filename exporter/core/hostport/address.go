package hostport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// Errors of CheckHost.
var (
	errUnspecified = errors.New("this address means no host; write the address of the host, such as 192.0.2.1 (127.0.0.1 or ::1 is this host)")
	errBroadcast   = errors.New("this is a broadcast address; write the address of one host, such as 192.0.2.1")
	errMulticast   = errors.New("this is a multicast address; write the address of one host, such as 192.0.2.1")
)

// Errors of Network.
var (
	errNetwork = errors.New("it must be a network with a prefix length, such as 192.0.2.0/24 or 2001:db8::/32")
	// ErrMapped is the error of IPv4 addresses as IPv6 ones (RFC 4291 section 2.5.5.2).
	ErrMapped = errors.New("write it as an IPv4 network")
)

// Network parses a network with a prefix length. It refuses IPv4-mapped IPv6 addresses: netip.Prefix.Contains is false for all of them.
func Network(s string) (netip.Prefix, error) {
	n, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return n, errNetwork
	case n.Addr().Is4In6():
		return n, ErrMapped
	}
	return n, nil
}

// thisNetwork has no address of a destination (RFC 1122 section 3.2.1.3).
var thisNetwork = netip.PrefixFrom(netip.IPv4Unspecified(), 8)

// Families of addresses, by their names in the configuration.
const (
	AnyFamily = "any"
	IPv4      = "ipv4"
	IPv6      = "ipv6"
)

// CheckHost reports an address that no host has: unspecified, broadcast (RFC 919), or multicast; and a zone that is missing or has
// no meaning (RFC 4007 section 11). It does not depend on this host: see CheckZone.
func CheckHost(a netip.Addr) error {
	zone := a.Zone() // Unmap drops it
	a = a.Unmap()
	number, notNumber := strconv.ParseUint(zone, 10, 32)
	switch {
	case a.WithZone("").IsUnspecified(), thisNetwork.Contains(a):
		return errUnspecified
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return errBroadcast
	case a.IsMulticast():
		return errMulticast
	case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		return fmt.Errorf("a link-local address needs the interface of this host; write it after a %%, such as %s%%eth0", a)
	case zone != "" && (a.Is4() || !a.IsLinkLocalUnicast()):
		return fmt.Errorf("only a link-local address has an interface; write %s", a.WithZone(""))
	case strings.Contains(zone, "%"):
		name, _, _ := strings.Cut(zone, "%")
		return fmt.Errorf("an address has one interface; write %s", a.WithZone(name))
	case notNumber == nil && number == 0:
		return fmt.Errorf("no interface has the number 0; write the name of one after the %%, such as %s%%eth0", a.WithZone(""))
	}
	return nil
}

// CheckZone reports a zone that is neither the name nor the number of an interface of this host: the kernel would send by any.
func CheckZone(a netip.Addr) error {
	zone := a.Zone()
	if zone == "" {
		return nil
	}
	_, err := InterfaceOf(zone)
	if name, inURL := strings.CutPrefix(zone, "25"); err != nil && inURL && name != "" {
		return fmt.Errorf("this host has no interface %s; %%25 is the spelling in a URL: write %s", zone, a.WithZone(name))
	}
	return err
}

// noInterface is the error of a zone that this host does not have: ENODEV.
type noInterface string

func (zone noInterface) Error() string { return "this host has no interface " + string(zone) }

func (noInterface) Unwrap() error { return syscall.ENODEV }

// InterfaceOf returns the interface of this host with a zone, its name or number (RFC 4007 section 11.2). Its error is ENODEV.
func InterfaceOf(zone string) (*net.Interface, error) {
	found, err := net.InterfaceByName(zone)
	if n, notNumber := strconv.ParseUint(zone, 10, 31); err != nil && notNumber == nil {
		found, err = net.InterfaceByIndex(int(n))
	}
	if err != nil {
		return nil, noInterface(zone)
	}
	return found, nil
}

// Numbered is an address with the number of its interface instead of the name. Package net remembers the number of a name for up to a
// minute, and would use the previous one of an interface that was deleted and made again.
func Numbered(a netip.Addr) netip.Addr {
	if a.Zone() == "" {
		return a
	}
	found, err := InterfaceOf(a.Zone())
	if err != nil {
		return a
	}
	return a.WithZone(strconv.Itoa(found.Index))
}

// RouteCommand is the command of iproute2 that prints the route to an address. It takes a zone as the device.
func RouteCommand(to netip.Addr) string {
	command := "ip route get " + to.WithZone("").String()
	if to.Zone() != "" {
		command += " dev " + to.Zone()
	}
	return command
}

// WantedFamily is the family of the addresses that a peer may have: the configured one, or the local address's, which it then
// names.
func WantedFamily(configured string, local netip.Addr) string {
	switch {
	case configured == IPv4 || configured == IPv6:
		return configured
	case local.Is4():
		return IPv4 + ", the family of the local address " + local.String()
	}
	return IPv6 + ", the family of the local address " + local.String()
}
