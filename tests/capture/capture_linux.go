// Package capture looks at an interface from beside the programs under test: it
// notes when the kernel handed each UDP packet to the device and when it took
// one from it, on packet sockets of its own.
//
// Stamps are the kernel's (SO_TIMESTAMPNS): of a packet going out the one taken
// in dev_queue_xmit, before the driver; of one coming in the one taken when the
// driver gave it to the stack. The truth about a veth pair is the difference of
// the two ends; it holds the driver, nothing of user space.
package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/instant"
)

// Packet is one UDP packet over IPv4.
type Packet struct {
	At       instant.Time
	Outgoing bool
	// Source and Destination are ports.
	Source, Destination uint16
	// Head is the beginning of the payload.
	Head [HeadBytes]byte
	// Bytes is the payload's length.
	Bytes int
}

// HeadBytes of each payload are kept.
const HeadBytes = 256

// Capture is open until Stop.
type Capture struct{ fd int }

// bufferBytes holds some 50,000 packets until Stop.
const bufferBytes = 64 << 20

// Open begins to look at an interface of the namespace that the calling thread
// is in. Nobody reads before Stop: to wake a reader up, between the stamp that
// is taken and the one that is to be judged by it, costs more than all the rest.
func Open(name string) (*Capture, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("tap: %w", err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("tap: socket: %w", err)
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bufferBytes),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everyProtocol(), Ifindex: link.Index}),
	)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("tap: %s: %w", name, err)
	}
	return &Capture{fd}, nil
}

// Stop ends it and returns what was seen, in order. Packets that there was no
// buffer for are an error: then the truth has holes.
func (t *Capture) Stop() ([]Packet, error) {
	packets, err := t.read()
	statistics, lookErr := unix.GetsockoptTpacketStats(t.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if lookErr == nil && statistics.Drops > 0 {
		lookErr = fmt.Errorf("tap: %d packets were not seen", statistics.Drops)
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
			return packets, fmt.Errorf("tap: %w", err)
		}
		link, ok := from.(*unix.SockaddrLinklayer)
		if p, is := parse(buffer[:n]); ok && is {
			p.At, p.Outgoing = Stamp(control[:c]), link.Pkttype == unix.PACKET_OUTGOING
			packets = append(packets, p)
		}
	}
}

// parse reads an unfragmented IPv4 packet with UDP in it.
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

// Stamp is the kernel's stamp (SO_TIMESTAMPNS) in the control messages of a packet, zero if there is none.
func Stamp(control []byte) instant.Time {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			return instant.FromUnix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return 0
}
