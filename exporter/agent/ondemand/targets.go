package ondemand

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe/target"
)

// Targets are the hosts that may be measured. Make one with NewTargets; the zero value allows none.
type Targets struct {
	names    []string // in lower case, without a final dot
	suffixes []string // of names, with a leading dot
	networks []netip.Prefix
	ports    []uint16
}

// NewTargets reads the allow list: names, "*.suffix" for all names below it, addresses, and networks. A name is measured
// only at an address that the list allows too. Ports are the UDP ports that may be used. An error is an *option.Error of
// the key targets or ports. An empty list allows none.
func NewTargets(list []string, ports []int) (t Targets, err error) {
	if len(ports) == 0 {
		return t, option.Errorf("ports", "is empty; list the UDP ports that may be measured, or leave the key out for %d", hostport.Reflector)
	}
	for i, entry := range list {
		if err := t.add(entry); err != nil {
			return t, option.Errorf(fmt.Sprintf("targets[%d]", i), "is %q; %v", entry, err)
		}
	}
	if len(list) > 0 && len(t.networks) == 0 {
		return t, option.Errorf("targets", "has names but no address or network; add the networks of the addresses that the names may have: "+
			"whoever controls a name chooses its address")
	}
	if err := option.EachOnce("ports", ports, 1, 65535); err != nil {
		return t, err
	}
	for _, port := range ports {
		t.ports = append(t.ports, uint16(port))
	}
	return t, nil
}

func (t *Targets) add(entry string) error {
	const want = "it must be a name, \"*.\" and the end of names, an address or a network"
	network, err := hostport.Network(entry)
	addr, notAddress := netip.ParseAddr(entry)
	if notAddress == nil {
		host := addr.WithZone("").Unmap()
		network, err = host.Prefix(host.BitLen())
	}
	switch {
	case errors.Is(err, hostport.ErrMapped):
		return err
	case err == nil && network != network.Masked():
		return fmt.Errorf("it has bits beyond its length; write %s", network.Masked())
	case err == nil && linkLocal6(network.Addr()):
		return errors.New(neverLinkLocal6)
	case err == nil && network.Addr().IsMulticast():
		return errors.New("multicast addresses cannot be measured")
	case err == nil && network.IsSingleIP() && hostport.CheckHost(network.Addr()) != nil:
		return hostport.CheckHost(network.Addr())
	case err == nil && addr.Zone() != "":
		return hostport.CheckHost(addr)
	case err == nil:
		t.networks = append(t.networks, network)
		return nil
	}
	name, wild := strings.CutPrefix(entry, "*.")
	host, port, err := target.Host(name, 0)
	if err == nil && port != 0 {
		return errors.New("a port does not belong here; list it in ports")
	}
	if _, address := netip.ParseAddr(host); err != nil || address == nil {
		return errors.New(want)
	}
	if wild {
		t.suffixes = append(t.suffixes, "."+canonical(host))
	} else {
		t.names = append(t.names, canonical(host))
	}
	return nil
}

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// host is a target as a client gave it.
type host struct {
	name string     // empty: an address
	addr netip.Addr // of an address
	port uint16
}

// maxTarget is the length of the longest name with brackets and port.
const maxTarget = 253 + len("[]:65535")

// parse reads HOST[:PORT] and checks that it is allowed. An error is a *Refused.
func (t *Targets) parse(given string, defaultPort uint16) (h host, err error) {
	if len(given) > maxTarget {
		return h, refused(Malformed, "The target has %d bytes; a host with a port has at most %d.", len(given), maxTarget)
	}
	name, port, err := target.Host(given, defaultPort)
	addr, isAddress := addressOf(given)
	if isAddress && linkLocal6(addr) {
		return h, refused(Malformed, "The target %q: %s.", given, neverLinkLocal6)
	}
	if wrong, ok := errors.AsType[*option.Error](err); ok && isAddress {
		return h, refused(Malformed, "The target %s.", wrong.Problem)
	}
	if err != nil {
		return h, refused(Malformed, "The target %q is no host name or address with an optional port, such as reflector.example.net:%d, 192.0.2.1 or [2001:db8::1]:%[2]d.", given, hostport.Reflector)
	}
	h.port = port
	if !slices.Contains(t.ports, port) {
		return h, refused(NotAllowed, "Port %d is not in the ports of on_demand.", port)
	}
	if h.addr, err = netip.ParseAddr(name); err != nil {
		if h.name = canonical(name); !t.named(h.name) {
			return h, refused(NotAllowed, "The target %q is not in the targets of on_demand.", name)
		}
		return h, nil
	}
	if h.addr = h.addr.Unmap(); !t.contains(h.addr) {
		return h, refused(NotAllowed, "The target %q is not in the targets of on_demand.", name)
	}
	return h, nil
}

func (t *Targets) named(name string) bool {
	return slices.Contains(t.names, name) || slices.ContainsFunc(t.suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

// addressOf returns the address that a client gave, perhaps with a port or a zone; false: it gave another target.
func addressOf(given string) (netip.Addr, bool) {
	if a, err := netip.ParseAddrPort(given); err == nil {
		return a.Addr(), true
	}
	a, err := netip.ParseAddr(strings.Trim(given, "[]"))
	return a, err == nil
}

// neverLinkLocal6 is why an address for which linkLocal6 is true is neither a target nor in the list of targets.
const neverLinkLocal6 = "a link-local IPv6 address cannot be measured on demand: it needs an interface, which a client may not choose"

func linkLocal6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() && a.IsLinkLocalUnicast() }

// contains reports whether an address may be measured. Loopback addresses, and link-local ones of IPv4, which belong to this host
// and its neighbors, need a network within their own range: 0.0.0.0/0 and ::/0 do not contain them. Addresses that no host has,
// and link-local ones of IPv6, which need an interface, are never measured.
func (t *Targets) contains(a netip.Addr) bool {
	if hostport.CheckHost(a) != nil {
		return false
	}
	return slices.ContainsFunc(t.networks, func(n netip.Prefix) bool {
		of := n.Addr()
		return n.Contains(a) && (!a.IsLoopback() || of.IsLoopback()) && (!a.IsLinkLocalUnicast() || of.IsLinkLocalUnicast())
	})
}
