package lab

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// end is one end of a veth pair.
type end struct {
	space namespace
	name  string
	mac   net.HardwareAddr
	// addresses; none at the router's ends, which are wires.
	addresses []netip.Prefix
}

// mac is locally administered; the last byte tells the ends apart.
func mac(last byte) net.HardwareAddr { return net.HardwareAddr{2, 0x6f, 0x77, 0, 0, last} }

// withNetlink gives f a netlink handle of the namespace. The library's own
// NewHandleAt is not used: it enters the namespace on the caller's thread and,
// in a user namespace, which may not go back into the first network namespace,
// silently leaves the thread there.
func (n namespace) withNetlink(f func(*netlink.Handle) error) error {
	var h *netlink.Handle
	err := n.do(func() (err error) {
		h, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return fmt.Errorf("lab: netlink: %w", err)
	}
	defer h.Close()
	return f(h)
}

// connect makes a veth pair, both ends down.
func connect(a, b end) error {
	return a.space.withNetlink(func(h *netlink.Handle) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr, attrs.MTU = a.name, a.mac, MTU
		veth := &netlink.Veth{
			LinkAttrs:        attrs,
			PeerName:         b.name,
			PeerHardwareAddr: b.mac,
			PeerMTU:          MTU,
			PeerNamespace:    netlink.NsFd(b.space.file.Fd()),
		}
		if err := h.LinkAdd(veth); err != nil {
			return fmt.Errorf("lab: veth pair %s-%s: %w", a.name, b.name, err)
		}
		return nil
	})
}

// up gives an end its addresses and the neighbor's, and brings it up.
func (e end) up(neighbor end) error {
	if err := e.allowIPv6(); err != nil {
		return err
	}
	return e.space.withNetlink(func(h *netlink.Handle) error {
		link, err := h.LinkByName(e.name)
		if err != nil {
			return fmt.Errorf("lab: %s: %w", e.name, err)
		}
		// No link-local address: neither router solicitations nor duplicate
		// address detection, which would be packets that nobody sent.
		if err := h.LinkSetIP6AddrGenMode(link, nl.IN6_ADDR_GEN_MODE_NONE); err != nil {
			return fmt.Errorf("lab: %s: address generation mode: %w", e.name, err)
		}
		if err := h.LinkSetUp(link); err != nil {
			return fmt.Errorf("lab: %s: up: %w", e.name, err)
		}
		if err := e.address(h, link); err != nil {
			return err
		}
		return e.know(h, link, neighbor)
	})
}

func (e end) address(h *netlink.Handle, link netlink.Link) error {
	for _, a := range e.addresses {
		address := &netlink.Addr{IPNet: &net.IPNet{
			IP:   a.Addr().AsSlice(),
			Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen()),
		}}
		if a.Addr().Is6() {
			address.Flags = unix.IFA_F_NODAD
		}
		if err := h.AddrAdd(link, address); err != nil {
			return fmt.Errorf("lab: %s: address %v: %w", e.name, a, err)
		}
	}
	return nil
}

// know enters the neighbor's addresses for good: the first packet of a test
// must not wait for a resolution, nor a later one for its confirmation.
func (e end) know(h *netlink.Handle, link netlink.Link, neighbor end) error {
	for _, a := range neighbor.addresses {
		err := h.NeighAdd(&netlink.Neigh{
			LinkIndex:    link.Attrs().Index,
			State:        netlink.NUD_PERMANENT,
			IP:           a.Addr().AsSlice(),
			HardwareAddr: neighbor.mac,
		})
		if err != nil {
			return fmt.Errorf("lab: %s: neighbor %v: %w", e.name, a, err)
		}
	}
	return nil
}

// ready waits until an end whose peer is up, too, is in use: until the kernel's link watch has run, packets sent there
// vanish without an error, and until its worker for addresses has, IPv6 packets that arrive are dropped, though a socket can
// have the address. On a busy machine both are late.
func (e end) ready() error {
	return e.space.withNetlink(func(h *netlink.Handle) error {
		missing := ""
		for deadline := time.Now().Add(45 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			link, err := h.LinkByName(e.name)
			if err != nil {
				return fmt.Errorf("lab: %s: %w", e.name, err)
			}
			if missing = e.missing(h, link); missing == "" {
				return nil
			}
		}
		return fmt.Errorf("lab: %s: %s after 45 s", e.name, missing)
	})
}

// missing returns what is missing before an end is in use; empty: nothing.
func (e end) missing(h *netlink.Handle, link netlink.Link) string {
	if s := link.Attrs().OperState; s != netlink.OperUp {
		return "still " + s.String()
	}
	for _, a := range e.addresses {
		routes, err := h.RouteGet(a.Addr().AsSlice())
		if err != nil || len(routes) == 0 || routes[0].Type != unix.RTN_LOCAL {
			return fmt.Sprintf("no local route to %v yet: %v", a.Addr(), err)
		}
	}
	return ""
}

// allowIPv6 undoes a host's default of no IPv6 (containers have it). The
// namespace decides which interface the path means, hence do.
func (e end) allowIPv6() error {
	if len(e.addresses) == 0 {
		return nil
	}
	return e.space.do(func() error {
		path := "/proc/sys/net/ipv6/conf/" + e.name + "/disable_ipv6"
		value, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(value)) == "0" {
			return nil // no such file: AddrAdd will tell
		}
		if err := os.WriteFile(path, []byte("0"), 0); err != nil {
			return fmt.Errorf("lab: %s: IPv6 is disabled by default here: %w", e.name, err)
		}
		return nil
	})
}

// loopbackUp brings lo up.
func (n namespace) loopbackUp() error {
	return n.withNetlink(func(h *netlink.Handle) error {
		lo, err := h.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("lab: lo: %w", err)
		}
		return h.LinkSetUp(lo)
	})
}

// statistics of the end's interface.
func (e end) statistics() (netlink.LinkStatistics, error) {
	var s netlink.LinkStatistics
	err := e.space.withNetlink(func(h *netlink.Handle) error {
		link, err := h.LinkByName(e.name)
		if err != nil {
			return fmt.Errorf("lab: %s: %w", e.name, err)
		}
		if link.Attrs().Statistics == nil {
			return fmt.Errorf("lab: %s: no statistics", e.name)
		}
		s = *link.Attrs().Statistics
		return nil
	})
	return s, err
}

// Offloads as the ethtool ioctl knows them (linux/ethtool.h).
const (
	ethtoolSetTxChecksum = 0x17
	ethtoolSetTSO        = 0x1f
	ethtoolSetGSO        = 0x24
	ethtoolSetGRO        = 0x2c
)

// plainFrames turns off everything that makes a veth carry other things than
// the frames of a wire: packets of many segments, and checksums left open.
func (e end) plainFrames() error {
	return e.space.do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("lab: socket: %w", err)
		}
		defer func() { _ = unix.Close(fd) }()
		for _, command := range []uint32{ethtoolSetTSO, ethtoolSetGSO, ethtoolSetGRO, ethtoolSetTxChecksum} {
			if err := ethtoolSet(fd, e.name, command, 0); err != nil {
				return fmt.Errorf("lab: %s: ethtool command %#x: %w", e.name, command, err)
			}
		}
		return nil
	})
}

// ethtoolSet is the SIOCETHTOOL ioctl with a struct ethtool_value.
func ethtoolSet(fd int, name string, command, value uint32) error {
	argument := struct{ command, value uint32 }{command, value}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the kernel copies a whole struct ifreq
	}{data: unsafe.Pointer(&argument)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}

// index of the end's interface in its namespace.
func (e end) index() (int, error) {
	var index int
	err := e.space.withNetlink(func(h *netlink.Handle) error {
		link, err := h.LinkByName(e.name)
		if err != nil {
			return fmt.Errorf("lab: %s: %w", e.name, err)
		}
		index = link.Attrs().Index
		return nil
	})
	return index, err
}

// deleteLinks removes every veth of the namespace.
func (n namespace) deleteLinks() error {
	return n.withNetlink(func(h *netlink.Handle) error {
		links, err := h.LinkList()
		if err != nil {
			return fmt.Errorf("lab: list interfaces: %w", err)
		}
		for _, link := range links {
			if link.Type() != "veth" {
				continue
			}
			if err := h.LinkDel(link); err != nil {
				return fmt.Errorf("lab: delete %s: %w", link.Attrs().Name, err)
			}
		}
		return nil
	})
}
