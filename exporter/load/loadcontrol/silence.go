package loadcontrol

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Silence is the error of a session whose load server was silent for a time: it names the address of this end where the host has
// lost it, since replies can then not arrive.
func (c *Client) Silence(at netip.AddrPort, limit time.Duration) error {
	why := ""
	if local := c.local.Addr(); !hasAddress(local) {
		why = fmt.Sprintf(": this host no longer has its address %s", local)
	}
	return fmt.Errorf("nothing was received from the load server at %s for %v%s", at, limit, why)
}

// hasAddress reports whether an interface of this host has an address; true if that is unknown.
func hasAddress(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(all, func(one net.Addr) bool {
		n, ok := one.(*net.IPNet)
		return ok && n.IP.Equal(net.IP(a.AsSlice())) || a.IsLoopback()
	})
}
