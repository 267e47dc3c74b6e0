package tstamp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// setup is what the kernel granted a socket.
type setup struct {
	receiveBytes, sendBytes int
	stamps                  int // the socket option that took the flags; 0: no kernel stamps
	flags                   int
	exactIDs                bool
	hardware                bool
}

// configure sets all options of a new socket.
func configure(fd int, v6 bool, o Options) (s setup, err error) {
	if v6 {
		if err := unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			return s, fmt.Errorf("IPV6_V6ONLY: %w", err)
		}
	}
	s.receiveBytes, err = buffer(fd, o.ReceiveBufferBytes, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
	if err != nil {
		return s, err
	}
	s.sendBytes, err = buffer(fd, o.SendBufferBytes, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
	if err != nil {
		return s, err
	}
	level, wanted := unix.SOL_IP, []int{unix.IP_PKTINFO, unix.IP_RECVTTL, unix.IP_RECVTOS, unix.IP_RECVERR}
	if v6 {
		level = unix.SOL_IPV6
		wanted = []int{unix.IPV6_RECVPKTINFO, unix.IPV6_RECVHOPLIMIT, unix.IPV6_RECVTCLASS, unix.IPV6_RECVERR}
	}
	for _, option := range wanted {
		if err := unix.SetsockoptInt(fd, level, option, 1); err != nil {
			return s, fmt.Errorf("socket option %d of level %d: %w", option, level, err)
		}
	}
	if o.Timestamps == Auto {
		s.enableStamps(fd, v6, o.Hardware != nil)
	}
	return s, nil
}

// buffer asks for a buffer, beyond the system's limit if we may (CAP_NET_ADMIN),
// and reads back what the kernel granted: above the limit it clips silently.
func buffer(fd, bytes, force, option int) (granted int, err error) {
	if bytes <= 0 {
		bytes = DefaultBufferBytes
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes); err != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, bytes); err != nil {
			return 0, fmt.Errorf("buffer of %d bytes: %w", bytes, err)
		}
	}
	granted, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, option)
	if err != nil {
		return 0, fmt.Errorf("buffer size: %w", err)
	}
	return granted, nil
}

// enableStamps turns on what the kernel offers. OPT_TSONLY keeps the packet
// itself off the error queue: less memory, and no privilege needed.
func (s *setup) enableStamps(fd int, v6, hardware bool) {
	software := unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE |
		unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY
	if hardware {
		both := software | unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE |
			unix.SOF_TIMESTAMPING_RAW_HARDWARE | unix.SOF_TIMESTAMPING_OPT_TX_SWHW
		if s.setStamps(fd, both) {
			s.hardware = true
		}
	}
	if s.stamps != 0 || s.setStamps(fd, software) {
		s.exactIDs = numbersOurs(v6, s.stamps, s.flags)
	}
}

// setStamps tries the option with 64-bit times (Linux 5.1), then the old one.
func (s *setup) setStamps(fd, flags int) bool {
	for _, option := range []int{unix.SO_TIMESTAMPING_NEW, unix.SO_TIMESTAMPING} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, flags) == nil {
			s.stamps, s.flags = option, flags
			return true
		}
	}
	return false
}

// restartCount makes the kernel number stamps from 0 again: it does so when
// OPT_ID is turned on after having been off.
func (s *setup) restartCount(fd int) error {
	err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, s.stamps, s.flags&^unix.SOF_TIMESTAMPING_OPT_ID)
	if e := unix.SetsockoptInt(fd, unix.SOL_SOCKET, s.stamps, s.flags); e != nil {
		err = e
	}
	return err
}

// msgProbe is MSG_PROBE (linux/socket.h), which golang.org/x/sys lacks.
const msgProbe = 0x10

// numbersOurs finds out whether the kernel takes SCM_TS_OPT_ID (Linux 6.13): a
// number of our choice with each packet. It asks on a socket of its own with
// MSG_PROBE, which goes through all checks and sends nothing; a kernel that
// does not know the control message says EINVAL.
func numbersOurs(v6 bool, option, flags int) bool {
	family, to := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
	if v6 {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: 9, Addr: [16]byte{15: 1}}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, flags) != nil {
		return false
	}
	var room envelope
	control := appendCmsgUint32(room.controlSlice()[:0], unix.SOL_SOCKET, unix.SCM_TS_OPT_ID, 1)
	_, err = unix.SendmsgN(fd, nil, control, to, msgProbe|unix.MSG_DONTWAIT)
	return err == nil || errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EADDRNOTAVAIL)
}
