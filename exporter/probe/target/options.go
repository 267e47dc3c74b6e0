package target

import (
	"errors"
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

// Options are the keys that all light probes share; a probe embeds them (`yaml:",inline"`).
type Options struct {
	Addressing `yaml:",inline"`
	// Interface is the network interface or VRF that packets use in both directions (SO_BINDTODEVICE); empty: the
	// kernel's choice. Name resolution does not use it.
	Interface string `yaml:"interface"`
	// ResolveInterval is the interval at which the peer's name is resolved again, 1 s to a day.
	ResolveInterval time.Duration `yaml:"resolve_interval"`
}

// Families, by their names in the configuration.
const (
	familyAny  = "any"
	familyIPv4 = "ipv4"
	familyIPv6 = "ipv6"
)

// maxInterface is the maximum length of an interface name (IFNAMSIZ of linux/if.h, without its NUL).
const maxInterface = 15

// DefaultOptions are the options without any key.
func DefaultOptions() Options {
	return Options{Addressing: Addressing{Family: familyAny}, ResolveInterval: time.Minute}
}

// Check validates the options; it is called before all other methods. An error is a *probe.OptionError.
func (o *Options) Check() error {
	errs := []error{option.Between("resolve_interval", o.ResolveInterval, time.Second, 24*time.Hour)}
	if len(o.Interface) > maxInterface || strings.ContainsAny(o.Interface, "/: \t\n") || o.Interface == "." || o.Interface == ".." {
		errs = append(errs, option.Errorf("interface", "is %q; it must be the name of a network interface or VRF of this host, such as eth0", o.Interface))
	}
	return errors.Join(append(errs, o.Addressing.Check())...)
}

// Check validates the addressing; it is called before all other methods. An error is a *probe.OptionError.
func (a *Addressing) Check() error {
	if err := option.OneOf("family", a.Family, familyAny, familyIPv4, familyIPv6); err != nil {
		return err
	}
	if a.local = (netip.Addr{}); a.Local == "" {
		return nil
	}
	addr, err := netip.ParseAddr(a.Local)
	if err != nil {
		return option.Errorf("local", "is %q; it must be an IP address of this host", a.Local)
	}
	if addr = addr.Unmap(); !a.Fits(addr) {
		return option.Errorf("local", "is %s, which is not of family %s", addr, a.Family)
	}
	a.local = addr
	return nil
}

// Fits reports whether a peer may have this address: it is of the configured family and of that of Local.
func (a *Addressing) Fits(peer netip.Addr) bool {
	if a.Family == familyIPv4 && !peer.Is4() || a.Family == familyIPv6 && peer.Is4() {
		return false
	}
	return !a.local.IsValid() || a.local.Is4() == peer.Is4()
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

// Host splits a path's peer, a host with an optional port; missing is the default port. An error is a *probe.OptionError of
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
