// Package capture records UDP packets on an interface, independently of the programs under test: when the kernel passed
// each one to the device or received it from it, with its own packet sockets.
//
// Timestamps are the kernel's (SO_TIMESTAMPNS_NEW): of an outgoing packet that of dev_queue_xmit, before the driver; of an
// incoming one that of its transfer from the driver to the stack. The true delay of a veth pair is the difference
// between both ends; it includes the driver, but no user space.
package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
)

// Packet is one UDP packet over IPv4.
type Packet struct {
	At       instant.Time
	Outgoing bool
	// Source and Destination are ports.
	Source, Destination uint16
	// Head is the first bytes of the payload.
	Head [HeadBytes]byte
	// Bytes is the payload's length.
	Bytes int
}

// HeadBytes of each payload are stored.
const HeadBytes = 256

// Capture records packets until Stop.
type Capture struct{ fd int }

// bufferBytes is space for some 50,000 packets until Stop.
const bufferBytes = 64 << 20

// Open starts to capture on an interface of the calling thread's namespace. Packets are read only in Stop: to wake a
// reader between the timestamps under test would distort them.
func Open(name string) (*Capture, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("capture: socket: %w", err)
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bufferBytes),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everyProtocol(), Ifindex: link.Index}),
	)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("capture: %s: %w", name, err)
	}
	return &Capture{fd}, nil
}

// Stop ends the capture and returns the packets, in order. Packets dropped for lack of buffer space are an error: the
// record is incomplete.
func (t *Capture) Stop() ([]Packet, error) {
	packets, err := t.read()
	statistics, lookErr := unix.GetsockoptTpacketStats(t.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if lookErr == nil && statistics.Drops > 0 {
		lookErr = fmt.Errorf("capture: %d packets were dropped for lack of buffer space", statistics.Drops)
	}
	return packets, errors.Join(err, lookErr, unix.Close(t.fd))
}

func (t *Capture) read() (packets []Packet, err error) {
	buffer, control := make([]byte, 1<<16), make([]byte, 128)
	for {
		n, c, _, from, err := unix.Recvmsg(t.fd, buffer, control, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return packets, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return packets, fmt.Errorf("capture: %w", err)
		}
		link, ok := from.(*unix.SockaddrLinklayer)
		if p, is := parse(buffer[:n]); ok && is {
			p.At, p.Outgoing = Stamp(control[:c]), link.Pkttype == unix.PACKET_OUTGOING
			packets = append(packets, p)
		}
	}
}

// parse reads an unfragmented IPv4 packet with UDP.
func parse(b []byte) (p Packet, ok bool) {
	const header, udp, protocol = 20, 8, 17
	if len(b) < header+udp || b[0] != 4<<4|header/4 || b[9] != protocol || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
		return p, false
	}
	u := b[header:]
	p.Source, p.Destination = binary.BigEndian.Uint16(u), binary.BigEndian.Uint16(u[2:])
	if p.Bytes = int(binary.BigEndian.Uint16(u[4:])) - udp; p.Bytes < 0 {
		return p, false
	}
	copy(p.Head[:], u[udp:])
	return p, true
}

// Stamp is the kernel's timestamp (SO_TIMESTAMPNS_NEW) in the control messages of a packet, zero if there is none.
func Stamp(control []byte) instant.Time {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS_NEW && len(m.Data) >= 16 {
			return instant.FromUnix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return 0
}
