package target

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

// Addressing selects the address family of a host, and the address to send from.
type Addressing struct {
	// Family restricts name resolution: "any", "ipv4" or "ipv6".
	Family string `yaml:"family"`
	// Local is the source address; empty: the kernel's choice.
	Local string `yaml:"local"`

	local netip.Addr
}

// Describe returns the descriptions of the keys. The check of them comes before all other methods.
func (a *Addressing) Describe() []option.Description {
	return []option.Description{
		option.Word(&a.Family, hostport.AnyFamily, []string{hostport.AnyFamily, hostport.IPv4, hostport.IPv6}, "Address family of a name's addresses: any, ipv4 or ipv6."),
		option.Text(&a.Local, "Address to send from.").Unset("the kernel's choice").WithExample("2001:db8::2").WithPlaceholder("ADDR").Checked(a.checkLocal),
	}
}

// Options are the keys that all light probes share; a probe embeds them (`yaml:",inline"`).
type Options struct {
	Addressing      `yaml:",inline"`
	Interface       string        `yaml:"interface"`
	ResolveInterval time.Duration `yaml:"resolve_interval"`
}

// Describe returns the descriptions of the keys.
func (o *Options) Describe() []option.Description {
	family, local := o.Addressing.Describe()[0], o.Addressing.Describe()[1]
	return []option.Description{
		local, family.FileOnly(),
		option.Text(&o.Interface, "Network interface or VRF of test packets and replies (SO_BINDTODEVICE). It does not apply to name resolution.").Unset("by the kernel's routes").WithExample("eth1").FileOnly().Checked(o.checkInterface),
		option.Number(&o.ResolveInterval, time.Minute, time.Second, 24*time.Hour, fmt.Sprintf("Interval at which the peer's name is resolved again. An address that replies stays until %d lookups in a row lack it.", maxLacking)).FileOnly(),
	}
}

// maxInterface is the maximum length of an interface name (IFNAMSIZ of linux/if.h, without its NUL).
const maxInterface = 15

// checkInterface reports a name that no interface has.
func (o *Options) checkInterface(key string) error {
	if len(o.Interface) > maxInterface || strings.ContainsAny(o.Interface, "/: \t\n") || o.Interface == "." || o.Interface == ".." {
		return option.Errorf(key, "is %q; it must be the name of a network interface or VRF of this host, such as eth0", o.Interface)
	}
	return nil
}

// checkLocal reads the source address.
func (a *Addressing) checkLocal(key string) error {
	addr, err := netip.ParseAddr(a.Local)
	if err != nil || strings.ContainsAny(addr.Zone(), " \t\n") {
		return option.Errorf(key, "is %q; it must be an IP address of this host", a.Local)
	}
	a.local = netip.Addr{}
	if addr = addr.Unmap(); addr.IsUnspecified() {
		return option.Errorf(key, "is %s, which is no address of a host; leave it out for the kernel's choice", addr)
	}
	if err := hostport.CheckHost(addr); err != nil {
		return option.Errorf(key, "is %s; %v", addr, err)
	}
	if !a.Fits(addr) {
		return option.Errorf(key, "is %s, which is not of %s %s", addr, option.Key("family"), a.Family)
	}
	a.local = addr
	return nil
}

// Fits reports whether a peer may have this address: it is of the configured family and of that of Local.
func (a *Addressing) Fits(peer netip.Addr) bool {
	if a.Family == hostport.IPv4 && !peer.Is4() || a.Family == hostport.IPv6 && peer.Is4() {
		return false
	}
	return !a.local.IsValid() || a.local.Is4() == peer.Is4()
}

// CheckPeer reports a host, of a key, that is an address which does not fit. The check of the options comes before it.
func (a *Addressing) CheckPeer(key, host string) error {
	addr, err := netip.ParseAddr(host)
	if err != nil || a.Fits(addr.Unmap()) {
		return nil
	}
	return option.Errorf(key, "is %s, which is not of family %s", host, hostport.WantedFamily(a.Family, a.local))
}

// From is the source address for a peer that fits: Local, or the unspecified address of its family.
func (a *Addressing) From(peer netip.Addr) netip.Addr {
	switch {
	case a.local.IsValid():
		return a.local
	case peer.Is4():
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// hostPattern is a DNS name; underscores are allowed, since many names have them.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

// maxHost is the maximum length of a DNS name (RFC 1035 section 2.3.4).
const maxHost = 253

// Host splits a path's peer, a host with an optional port; missing is the default port. An error is a *option.Error of
// the key probe.PeerKey.
func Host(peer string, missing uint16) (host string, port uint16, err error) {
	host, port, err = hostport.Split(peer, missing)
	if err == nil {
		if _, notAddress := netip.ParseAddr(host); notAddress != nil && (len(host) > maxHost || !hostPattern.MatchString(host)) {
			err = fmt.Errorf("%.80q is no host name: it must have letters, digits and hyphens between its dots, such as reflector.example.net", host)
		}
	}
	if err != nil {
		return "", 0, option.Errorf(probe.PeerKey, "is %.300q; %v", peer, err)
	}
	return host, port, nil
}
