package tstamp

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// socket is the kernel's part of a Conn.
type socket struct {
	fd    int // -1 after Close
	local netip.AddrPort
	setup setup
	poll  *poll
	// device is the interface that it is bound to, by Options.Device or by a link-local address (ipv6(7)); empty: none.
	device string
}

// setup is what the kernel granted a socket.
type setup struct {
	receiveBytes, sendBytes int
	stamps                  int // the flags of SO_TIMESTAMPING; 0: no kernel timestamps
	hardware                bool
	discovery               int // the system's default IP_MTU_DISCOVER
}

// openSocket opens a socket bound to local.
func openSocket(local netip.AddrPort, o Options) (s socket, err error) {
	v6 := local.Addr().Unmap().Is6()
	family := unix.AF_INET
	if v6 {
		family = unix.AF_INET6
	}
	if s.fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP); err != nil {
		return s, fmt.Errorf("tstamp: open %v: socket: %w", local, err)
	}
	if err = s.bind(local, v6, o); err != nil {
		_ = unix.Close(s.fd)
		return s, fmt.Errorf("tstamp: open %v: %w", local, err)
	}
	return s, nil
}

func (s *socket) bind(local netip.AddrPort, v6 bool, o Options) (err error) {
	if s.setup, err = configure(s.fd, v6, o); err != nil {
		return err
	}
	to, errno := sockaddr(local, s.fd)
	if errno != 0 {
		return fmt.Errorf("this host has no interface %s: %w", local.Addr().Zone(), errno)
	}
	if err = unix.Bind(s.fd, to); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	name, err := unix.Getsockname(s.fd)
	if err != nil {
		return fmt.Errorf("getsockname: %w", err)
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		s.local = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(a.Addr)
		if a.ZoneId != 0 {
			ip = ip.WithZone(nameOf(s.fd, a.ZoneId))
		}
		s.local = netip.AddrPortFrom(ip, uint16(a.Port))
	}
	if s.device, err = s.boundTo(); err != nil {
		return err
	}
	s.poll, err = newPoll(s.fd)
	return err
}

// boundTo returns the present name of the interface that the socket is bound to; ENODEV: it is gone.
func (s *socket) boundTo() (string, error) {
	name, err := unix.GetsockoptString(s.fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
	if err != nil {
		return "", fmt.Errorf("SO_BINDTODEVICE: %w", err)
	}
	return name, nil
}

// stillBound reports whether the interface that the socket is bound to is there and has the same name, or there is none.
func (s *socket) stillBound() bool {
	if s.device == "" {
		return true
	}
	name, err := s.boundTo()
	return err == nil && name == s.device
}

func sockaddr(a netip.AddrPort, fd int) (unix.Sockaddr, unix.Errno) {
	if ip := a.Addr().Unmap(); ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}, 0
	}
	s := &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	if zone := a.Addr().Zone(); zone != "" {
		if s.ZoneId = indexOf(fd, zone); s.ZoneId == 0 {
			return nil, unix.ENODEV
		}
	}
	return s, 0
}

// Renew replaces the socket by a new one, as Open makes it, if the interface that it is bound to is gone or has another name
// now: the kernel binds a socket to the number of an interface, which no later interface of that name has. Otherwise it
// does nothing, and it costs one system call if the socket is bound to an interface. Send and Receive continue with the new
// socket, whose port is another one unless Open gave it. While no new socket can be opened, Renew returns the reason and
// the old one remains. After Close it does nothing.
func (c *Conn) Renew() (renewed bool, err error) {
	c.renewMu.Lock()
	defer c.renewMu.Unlock()
	if c.closed.Load() {
		return false, nil
	}
	if c.stillBound() {
		return false, nil
	}
	next, err := openSocket(c.asked, c.options)
	if err != nil {
		return false, err
	}
	_ = c.poll.file.Close() // wakes a waiting Receive
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	c.receiveMu.Lock()
	defer c.receiveMu.Unlock()
	c.drainMu.Lock()
	defer c.drainMu.Unlock()
	c.drain()
	c.pending.restart()
	c.drops.read(c.fd, true)
	c.drops.raw = 0
	_ = unix.Close(c.fd) // its interface is gone
	c.socket, c.suspect, c.sendOptions = next, false, SendOptions{}
	c.outZones.forget()
	c.alarm.moveTo(c.poll.file)
	if c.coalescing {
		_ = setBool(c.fd, unix.SOL_UDP, unix.UDP_GRO, true) // it was possible before; without it, the packets arrive singly
	}
	return true, nil
}

// configure sets all options of a new socket.
func configure(fd int, v6 bool, o Options) (s setup, err error) {
	if o.Device != "" {
		if err := unix.BindToDevice(fd, o.Device); err != nil {
			return s, explainDevice(o.Device, err)
		}
	}
	if v6 {
		if err := unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			return s, fmt.Errorf("IPV6_V6ONLY: %w", err)
		}
	}
	if s.receiveBytes, err = buffer(fd, o.ReceiveBufferBytes, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF); err != nil {
		return s, err
	}
	if s.sendBytes, err = buffer(fd, o.SendBufferBytes, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF); err != nil {
		return s, err
	}
	level, discover := discovery(v6)
	wanted := []int{unix.IP_PKTINFO, unix.IP_RECVTTL, unix.IP_RECVTOS, unix.IP_RECVERR}
	if v6 {
		wanted = []int{unix.IPV6_RECVPKTINFO, unix.IPV6_RECVHOPLIMIT, unix.IPV6_RECVTCLASS, unix.IPV6_RECVERR}
	}
	for _, option := range wanted {
		if err := unix.SetsockoptInt(fd, level, option, 1); err != nil {
			return s, fmt.Errorf("socket option %d of level %d: %w", option, level, err)
		}
	}
	if !o.UserTimestamps {
		s.enableStamps(fd, o.Hardware != nil)
	}
	if s.discovery, err = unix.GetsockoptInt(fd, level, discover); err != nil {
		return s, fmt.Errorf("path MTU discovery: %w", err)
	}
	return s, nil
}

// explainDevice adds the remedy to an error of SO_BINDTODEVICE.
func explainDevice(name string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.EINVAL): // EINVAL: the name is too long
		advice = ": want the name of an interface or a VRF of this network namespace, as `ip link` shows it"
	case errors.Is(err, unix.EPERM):
		advice = ": before Linux 5.7 this needs CAP_NET_RAW"
	}
	return fmt.Errorf("bind to device %q: %w%s", name, err, advice)
}

// discovery returns the socket option of path MTU discovery.
func discovery(v6 bool) (level, option int) {
	if v6 {
		return unix.SOL_IPV6, unix.IPV6_MTU_DISCOVER
	}
	return unix.SOL_IP, unix.IP_MTU_DISCOVER
}

// buffer sets a buffer size, beyond the system's limit if the process may (CAP_NET_ADMIN), and reads back what the
// kernel granted: the kernel clips silently at the limit.
func buffer(fd, bytes, force, option int) (granted int, err error) {
	bytes = cmp.Or(bytes, DefaultBufferBytes)
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, bytes); err != nil {
			return 0, fmt.Errorf("buffer of %d bytes: %w", bytes, err)
		}
	}
	if granted, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, option); err != nil {
		return 0, fmt.Errorf("buffer size: %w", err)
	}
	return granted, nil
}

// The flags of SO_TIMESTAMPING. OPT_TSONLY keeps the packet itself off the error queue: less memory, and no privilege
// required.
const (
	softwareFlags = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE |
		unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY
	hardwareFlags = softwareFlags | unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE |
		unix.SOF_TIMESTAMPING_RAW_HARDWARE | unix.SOF_TIMESTAMPING_OPT_TX_SWHW
	// markFlags are the flags of a marked packet in addition to the socket's.
	markFlags = unix.SOF_TIMESTAMPING_TX_SCHED
	// packetFlags can be set for each packet (Linux 4.6).
	packetFlags = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_TX_HARDWARE
)

// enableStamps enables the timestamps that the kernel offers (SO_TIMESTAMPING_NEW, Linux 5.1).
func (s *setup) enableStamps(fd int, hardware bool) {
	for _, flags := range []int{hardwareFlags, softwareFlags} {
		if (hardware || flags == softwareFlags) && unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, flags) == nil {
			s.stamps, s.hardware = flags, flags == hardwareFlags
			return
		}
	}
}
