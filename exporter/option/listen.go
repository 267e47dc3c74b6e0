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
)

// Listen is an address to listen on. The zero Addr means all addresses of this
// host, of both families.
type Listen struct {
	Addr netip.Addr
	Port uint16
}

// errListen says what an address to listen on looks like.
var errListen = errors.New(`it must be an address and a port, such as ":862", "192.0.2.1:862" or "[2001:db8::1]:862"`)

// UnmarshalText reads ":port" or "address:port".
func (l *Listen) UnmarshalText(b []byte) error {
	if port, all := strings.CutPrefix(string(b), ":"); all {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return errListen
		}
		*l = Listen{Port: uint16(n)}
		return nil
	}
	addrPort, err := netip.ParseAddrPort(string(b))
	if err != nil {
		return errListen
	}
	*l = Listen{Addr: addrPort.Addr().Unmap(), Port: addrPort.Port()}
	return nil
}

// String is what UnmarshalText reads.
func (l Listen) String() string {
	if !l.Addr.IsValid() {
		return fmt.Sprintf(":%d", l.Port)
	}
	return netip.AddrPortFrom(l.Addr, l.Port).String()
}

// Addrs are the addresses to be opened. All addresses of this host are one of each family
// that its kernel has.
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

// hasIPv6 is false on a kernel without that family. All other reasons why it cannot be used are
// told by who opens its sockets.
func hasIPv6() bool {
	c, err := net.ListenPacket("udp6", "[::]:0")
	if err != nil {
		return !errors.Is(err, syscall.EAFNOSUPPORT)
	}
	_ = c.Close() // it was only to see that it opens
	return true
}

// Listens is the option "listen".
type Listens []Listen

// Check refuses an empty list, and addresses that are given twice. fallback is the port that the
// message names.
func (all Listens) Check(fallback uint16) error {
	if len(all) == 0 {
		return Errorf("listen", `is an empty list; name an address such as ":%d", or leave the key out`, fallback)
	}
	var errs []error
	for i, l := range all {
		if slices.Contains(all[:i], l) {
			errs = append(errs, &Error{Key: fmt.Sprintf("listen[%d]", i), Problem: fmt.Sprintf("is %q, which is in the list already", l), At: "listen"})
		}
	}
	return errors.Join(errs...)
}

// Addrs are those of all.
func (all Listens) Addrs() (addrs []netip.AddrPort) {
	for _, l := range all {
		addrs = append(addrs, l.Addrs()...)
	}
	return addrs
}

// Ports is a range of ports, both ends included, written as "8621-8640".
type Ports struct{ First, Last uint16 }

// UnmarshalText reads two ports, of which the first is not above the second.
func (p *Ports) UnmarshalText(text []byte) error {
	from, to, _ := strings.Cut(string(text), "-")
	first, err := strconv.ParseUint(from, 10, 16)
	last, wrong := strconv.ParseUint(to, 10, 16)
	if err != nil || wrong != nil || first == 0 || first > last {
		return errors.New("it must be a range of ports, such as 8621-8640")
	}
	*p = Ports{uint16(first), uint16(last)}
	return nil
}

// String is what UnmarshalText reads.
func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

// All are the ports in order.
func (p Ports) All() iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		for port := int(p.First); port <= int(p.Last) && yield(uint16(port)); port++ {
		}
	}
}
