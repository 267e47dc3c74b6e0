package loadcontrol

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"oneway.example/exporter/core/hostport"
)

// Silent is what of a session is silent.
type Silent string

// The parts of a session.
const (
	// SilentAll: all that the load server sends.
	SilentAll Silent = ""
	// SilentUDP: its UDP packets, and no message has come meanwhile.
	SilentUDP Silent = " over UDP, nor a message over TCP,"
	// SilentTCP: all connections of a session that has nothing else.
	SilentTCP Silent = " over TCP"
	// SilentControl: the control connection, on which something is due, while other packets arrive.
	SilentControl Silent = " over the control connection (TCP)"
	// SilentProcess: the same, while the host acknowledges payload.
	SilentProcess Silent = " over the control connection"
)

// Silence is the error of a session whose load server was silent for a time: it names what is silent, and why nothing
// that this host sends reaches it, if that is so. held is the round trip of the path, as far as it is known.
func (c *Client) Silence(at netip.AddrPort, what Silent, limit, held time.Duration) error {
	why := ""
	switch unreached := c.unreached(at); {
	case unreached != "":
		why = ": " + unreached
	case what == SilentControl && held >= longRoundTrip:
		why = fmt.Sprintf(", though other packets of it arrive: a long queue (round trips of up to %v) holds back or drops those of this connection, or a firewall does", held.Round(time.Second))
	case what == SilentControl:
		why = ", though other packets of it arrive: does a firewall drop packets of this connection, in either direction?"
	case what == SilentProcess:
		why = ", though its host acknowledges payload: it hangs, or a firewall drops packets of the control connection (TCP)"
	}
	return fmt.Errorf("nothing was received from the load server at %s%s for %v%s", at, what, limit.Round(time.Second), why)
}

// longRoundTrip is the least round trip that shows a long queue: paths without one have less.
const longRoundTrip = time.Second

// Ended is the error of a session whose control connection has ended. It names why nothing that this host sends reaches the load
// server, if that is so: the load server, which still reaches this host, then ends a session first.
func (c *Client) Ended(why error) error {
	unreached := c.unreached(c.Remote())
	if unreached != "" {
		unreached = " (" + unreached + ")"
	}
	return fmt.Errorf("the session with the load server at %s ended: %w%s", c.Remote(), why, unreached)
}

// RejectedBy sets the function that returns why the session's UDP packets are rejected on the path, or nil: errors of the session
// name it.
func (c *Client) RejectedBy(rejected func() error) { c.rejected.Store(&rejected) }

// unreached is why nothing that this host sends reaches an address of the load server, in words; empty: it does, or that is unknown.
func (c *Client) unreached(to netip.AddrPort) string {
	local := c.local.Addr()
	if !hasAddress(local) {
		return fmt.Sprintf("this host no longer has its address %s", local)
	}
	// It looks up the route, and sends nothing.
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0)), net.UDPAddrFromAddrPort(to))
	if err == nil {
		_ = conn.Close() // nothing was sent
		if rejected := c.rejected.Load(); rejected != nil {
			if err := (*rejected)(); err != nil {
				return fmt.Sprintf("UDP packets to it are rejected: %v", err)
			}
		}
		return ""
	}
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok || !slices.Contains([]syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.EACCES, syscall.EINVAL}, errno) {
		return ""
	}
	return fmt.Sprintf("this host does not send to it: its route is missing, or prohibits or drops its packets (%v): `%s` shows it", errno, hostport.RouteCommand(to.Addr()))
}

// hasAddress reports whether an interface of this host has an address; true if that is unknown.
func hasAddress(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(all, func(one net.Addr) bool {
		n, ok := one.(*net.IPNet)
		return ok && n.IP.Equal(net.IP(a.AsSlice())) || a.IsLoopback()
	})
}
