package option

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"oneway.example/exporter/core/hostport"
)

// Listen is an address to listen on. The zero Addr means all addresses of this host, in both address families.
type Listen struct {
	Addr netip.Addr
	Port uint16
}

// Errors of an address to listen on.
var (
	errListen = fmt.Errorf(`it must be an address and a port, such as ":%d", "192.0.2.1:%[1]d" or "[2001:db8::1]:%[1]d"`, hostport.Reflector)
	errPort   = errors.New("its port must be between 0 and 65535")
)

// UnmarshalText reads ":port" or "address:port".
func (l *Listen) UnmarshalText(b []byte) error {
	host, port, err := net.SplitHostPort(string(b))
	if err != nil {
		return meant(string(b))
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		if strings.Contains(string(b), "://") || strings.Trim(port, "0123456789") != "" {
			return errListen
		}
		return errPort
	}
	if host == "" {
		*l = Listen{Port: uint16(n)}
		return nil
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && strings.ContainsAny(addr.Zone(), " \t\n"):
		return hostport.ErrSpace
	case err == nil && addr.IsUnspecified():
		*l = Listen{Addr: addr.Unmap(), Port: uint16(n)}
		return nil
	case err == nil:
		*l = Listen{Addr: addr.Unmap(), Port: uint16(n)}
		return hostport.CheckHost(addr)
	case host == "*":
		return fmt.Errorf(`write ":%d", which means all addresses of this host`, n)
	}
	return fmt.Errorf(`%q is no address; write an address of this host, such as "127.0.0.1:%d", or ":%d" for all`, host, n, n)
}

// Pattern matches the texts of UnmarshalText.
func (Listen) Pattern() string { return `^[^/]*:[0-9]+$` }

// meant is the error of a text that is no address with a port: it has the spelling that is probably meant.
func meant(s string) error {
	if n, err := strconv.ParseUint(s, 10, 16); err == nil {
		return fmt.Errorf(`write ":%d" for all addresses of this host, or an address and a port, such as "192.0.2.1:%d"`, n, n)
	}
	if i := strings.LastIndexByte(s, ':'); i > 0 {
		if addr, err := netip.ParseAddr(s[:i]); err == nil {
			return hostport.NeedsBrackets(addr.String(), s[i+1:])
		}
	}
	if addr, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return fmt.Errorf(`it has no port; write %q`, netip.AddrPortFrom(addr, hostport.Reflector).String())
	}
	return errListen
}

// String is a text that UnmarshalText accepts.
func (l Listen) String() string {
	if !l.Addr.IsValid() {
		return fmt.Sprintf(":%d", l.Port)
	}
	return netip.AddrPortFrom(l.Addr, l.Port).String()
}

// Addrs are the addresses to bind. All addresses of this host are one unspecified address per address family of the
// kernel.
func (l Listen) Addrs() []netip.AddrPort {
	if l.Addr.IsValid() {
		return []netip.AddrPort{netip.AddrPortFrom(l.Addr, l.Port)}
	}
	all := []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), l.Port)}
	if hasIPv6() {
		all = append(all, netip.AddrPortFrom(netip.IPv6Unspecified(), l.Port))
	}
	return all
}

// hasIPv6 is false on a kernel without IPv6. Other reasons that prevent its use are reported when the sockets are opened.
func hasIPv6() bool {
	c, err := net.ListenPacket("udp6", "[::]:0")
	if err != nil {
		return !errors.Is(err, syscall.EAFNOSUPPORT)
	}
	_ = c.Close() // opened as a test only
	return true
}

// Listens is the value of option "listen".
type Listens []Listen

// includes reports whether o is one of the addresses of l, so that the kernel refuses to bind both. Port 0 is another port for each, and
// also the port of an element that could not be read.
func (l Listen) includes(o Listen) bool {
	return l.Port == o.Port && l.Port != 0 && o.Addr.IsValid() && (!l.Addr.IsValid() || l.Addr.IsUnspecified() && l.Addr != o.Addr && l.Addr.Is4() == o.Addr.Is4())
}

// Check rejects an empty list, and an address that another element has or includes. fallback is the port in the message.
func (all Listens) Check(fallback uint16) error {
	if len(all) == 0 {
		return Errorf("listen", `is an empty list; name an address such as ":%d", or leave the key out`, fallback)
	}
	var errs []error
	for i, l := range all {
		key, wider := fmt.Sprintf("listen[%d]", i), slices.IndexFunc(all, func(o Listen) bool { return o.includes(l) })
		switch {
		case l.Port != 0 && slices.Contains(all[:i], l):
			errs = append(errs, &Error{Key: key, Problem: fmt.Sprintf("is %q for the second time", l), At: "listen"})
		case wider >= 0:
			errs = append(errs, &Error{Key: key, Problem: fmt.Sprintf("is %q, which listen[%d], %q, includes; remove one of them", l, wider, all[wider]), At: "listen"})
		}
	}
	return errors.Join(errs...)
}

// CheckBeside rejects an address that another server of this process listens on, too, with UDP as well. others are of the key listen of the
// section server.
func (all Listens) CheckBeside(server string, others Listens) error {
	var errs []error
	for i, l := range all {
		same := func(o Listen) bool { return l.Port != 0 && o == l || o.includes(l) || l.includes(o) }
		if j := slices.IndexFunc(others, same); j >= 0 {
			errs = append(errs, &Error{
				Key: fmt.Sprintf("listen[%d]", i), At: "listen",
				Problem: fmt.Sprintf("is %q, and %s.listen[%d] is %q: both need the UDP port; write another port for one of them", l, server, j, others[j]),
			})
		}
	}
	return errors.Join(errs...)
}

// Addrs are the addresses to bind of all elements.
func (all Listens) Addrs() (addrs []netip.AddrPort) {
	for _, l := range all {
		addrs = append(addrs, l.Addrs()...)
	}
	return addrs
}

// LoadServerPorts are the default ports of the further sockets of a session: TCP for transfers, UDP for the packets during the load.
func LoadServerPorts() Ports {
	return Ports{First: hostport.LoadServer + 1, Last: hostport.LoadServer + 20}
}

// Ports is an inclusive range of ports, written as "9000-9010".
type Ports struct{ First, Last uint16 }

// UnmarshalText reads two ports; the first must not exceed the second.
func (p *Ports) UnmarshalText(text []byte) error {
	from, to, _ := strings.Cut(string(text), "-")
	first, err := strconv.ParseUint(from, 10, 16)
	last, wrong := strconv.ParseUint(to, 10, 16)
	if err != nil || wrong != nil || first == 0 || first > last {
		return fmt.Errorf("it must be a range of ports, such as %v", LoadServerPorts())
	}
	*p = Ports{uint16(first), uint16(last)}
	return nil
}

// Pattern matches the texts of UnmarshalText.
func (Ports) Pattern() string { return `^[0-9]+-[0-9]+$` }

// String is a text that UnmarshalText accepts.
func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

// All iterates over the ports in ascending order.
func (p Ports) All() iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		for port := int(p.First); port <= int(p.Last) && yield(uint16(port)); port++ {
		}
	}
}
