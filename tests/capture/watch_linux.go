package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Sent is the header of an IP packet that a host sends. The ports are those of UDP and TCP, and 0 for other protocols
// and for fragments.
type Sent struct {
	Protocol int // IPPROTO_UDP and so on; of IPv6 the first header's
	From, To netip.AddrPort
}

func (s Sent) String() string {
	return fmt.Sprintf("protocol %d from %v to %v", s.Protocol, s.From, s.To)
}

// Watch captures packets sent on all interfaces of a network namespace.
type Watch struct {
	fd     int
	buffer []byte
}

// NewWatch starts to capture in the calling thread's namespace.
func NewWatch() (*Watch, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(everyProtocol()))
	if err != nil {
		return nil, fmt.Errorf("capture: socket: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bufferBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("capture: %w", err), unix.Close(fd))
	}
	return &Watch{fd: fd, buffer: make([]byte, 1<<16)}, nil
}

// everyProtocol is ETH_P_ALL in network byte order.
func everyProtocol() uint16 {
	return binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL))
}

// Close ends the capture.
func (w *Watch) Close() { _ = unix.Close(w.fd) }

// Each calls f with every IP packet since the last call, and with the payload of UDP or IP. Packets dropped for lack of
// buffer space are an error.
func (w *Watch) Each(f func(s Sent, payload []byte)) error {
	for {
		n, from, err := unix.Recvfrom(w.fd, w.buffer, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil && !errors.Is(err, unix.EAGAIN):
			return fmt.Errorf("capture: %w", err)
		case err != nil:
			statistics, err := unix.GetsockoptTpacketStats(w.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
			if err == nil && statistics.Drops > 0 {
				err = fmt.Errorf("capture: %d packets were dropped for lack of buffer space", statistics.Drops)
			}
			return err
		}
		if link, ok := from.(*unix.SockaddrLinklayer); !ok || link.Pkttype != unix.PACKET_OUTGOING {
			continue
		}
		if s, payload, ok := header(w.buffer[:n]); ok {
			f(s, payload)
		}
	}
}

// header reads the header of an IP packet.
func header(b []byte) (s Sent, payload []byte, ok bool) {
	const v4, v6, udp = 20, 40, 8
	var from, to netip.Addr
	fragment := false
	switch {
	case len(b) >= v4 && b[0]>>4 == 4 && len(b) >= int(b[0]&15)*4:
		from, to = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
		s.Protocol, payload = int(b[9]), b[int(b[0]&15)*4:]
		fragment = binary.BigEndian.Uint16(b[6:])&0x1fff != 0
	case len(b) >= v6 && b[0]>>4 == 6:
		from, to = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		s.Protocol, payload = int(b[6]), b[v6:]
	default:
		return s, nil, false // ARP
	}
	s.From, s.To = netip.AddrPortFrom(from, 0), netip.AddrPortFrom(to, 0)
	if (s.Protocol == unix.IPPROTO_UDP || s.Protocol == unix.IPPROTO_TCP) && !fragment && len(payload) >= udp {
		s.From = netip.AddrPortFrom(from, binary.BigEndian.Uint16(payload))
		s.To = netip.AddrPortFrom(to, binary.BigEndian.Uint16(payload[2:]))
		if s.Protocol == unix.IPPROTO_UDP {
			payload = payload[udp:]
		}
	}
	return s, payload, true
}
