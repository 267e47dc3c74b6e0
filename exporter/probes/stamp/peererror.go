package stamp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/net/tstamp"
)

// explained is the last error of sending to the peer, and what to do.
func (v *snapshot) explained() string {
	if icmp, ok := errors.AsType[tstamp.ICMPError](v.peerError); ok {
		return v.rejected(&icmp)
	}
	if errors.Is(v.peerError, syscall.ECONNREFUSED) {
		return v.closed(v.peerError)
	}
	text := errtext.Words(v.peerError)
	route := fmt.Sprintf("`%s` shows the route to it", hostport.RouteCommand(v.peer.Addr()))
	switch {
	case errors.Is(v.peerError, syscall.EHOSTUNREACH), errors.Is(v.peerError, syscall.ENETUNREACH):
		return fmt.Sprintf("%s: %s", text, route)
	case errors.Is(v.peerError, syscall.EACCES):
		return fmt.Sprintf("%s: a route of this host prohibits it, or it is the broadcast address of a network: %s", text, route)
	case errors.Is(v.peerError, syscall.EINVAL):
		return fmt.Sprintf("%s: a route of this host drops its packets (blackhole): %s", text, route)
	case errors.Is(v.peerError, syscall.EPERM):
		return fmt.Sprintf("%s: this host does not let its packets out: %s", text, errtext.ForbiddenBy)
	}
	return text
}

// rejected is an ICMP message and what to do. Its sender may be a router, a firewall, or the peer.
func (v *snapshot) rejected(e *tstamp.ICMPError) string {
	from := v.peer.Addr()
	if e.Offender.IsValid() && !e.Offender.IsUnspecified() {
		from = e.Offender.Unmap()
	}
	elsewhere := from != v.peer.Addr().Unmap()
	switch {
	case e.Prohibited():
		return fmt.Sprintf("a firewall at %s rejects UDP port %d (ICMP %s): permit it there", from, v.peer.Port(), e.Meaning())
	case e.Err == syscall.ECONNREFUSED && elsewhere:
		return fmt.Sprintf("%v: a firewall at %s rejects UDP port %d: permit it there", e, from, v.peer.Port())
	case e.Err == syscall.ECONNREFUSED:
		return v.closed(e.Err)
	case e.Err == syscall.EMSGSIZE:
		return fmt.Sprintf("%v: the path's MTU is %s: lower payload_bytes", e, mtuText(e.MTU))
	case e.Meaning() == tstamp.TTLExceeded || e.Meaning() == tstamp.HopLimitExceeded:
		return fmt.Sprintf("%v: the path has more hops than the packets' ttl permits, or a loop: raise ttl, and see `mtr %s`", e, v.peer.Addr())
	case !elsewhere:
		return fmt.Sprintf("%v: the host is up, so its firewall rejects UDP port %d, or a router does in its name", e, v.peer.Port())
	}
	route := hostport.RouteCommand(v.peer.Addr())
	if isOwn(from) {
		return fmt.Sprintf("%v, this host: it sought the address on its own link, and no host there has it: is the host up? If `%s` shows no via and the peer is elsewhere, the prefix length of this host's address, or a route, is wrong", e, route)
	}
	return fmt.Sprintf("%v: is the host up? `%s` shows the route to it from here", e, route)
}

// isOwn reports whether an interface of this host has an address.
func isOwn(a netip.Addr) bool {
	all, _ := net.InterfaceAddrs() // none: it is not known
	return slices.ContainsFunc(all, func(one net.Addr) bool {
		n, ok := one.(*net.IPNet)
		return ok && n.IP.Equal(a.AsSlice())
	})
}

// closed is the error of a port that the peer itself rejects.
func (v *snapshot) closed(err error) string {
	return fmt.Sprintf("%s: no reflector listens there, or the host's firewall rejects UDP port %d; start one: `oneway reflect`, or `reflector:` in its agent's configuration", errtext.Words(err), v.peer.Port())
}

// mtuText is an MTU that a router reported; zero: it did not.
func mtuText(mtu int) string {
	if mtu == 0 {
		return "smaller than the packets"
	}
	return fmt.Sprintf("%d bytes", mtu)
}
