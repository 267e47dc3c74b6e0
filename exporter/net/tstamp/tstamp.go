// Package tstamp is a UDP socket that sends and receives batches of packets and reports the transmit and receive
// timestamps of the kernel or of the network card with them.
//
// The timestamps are those of SO_TIMESTAMPING (the kernel's Documentation/networking/timestamping.rst). A transmit
// timestamp comes back on the socket's error queue under a number; the package matches it with the cookie that the
// caller gave the packet. Where the kernel provides no timestamp, a user-space clock reading replaces it, and the
// timestamp's origin is User.
//
// The package knows no protocol: payloads are opaque.
package tstamp

import (
	"net/netip"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// HardwareClock relates a network card's own clock to the system clock.
type HardwareClock interface {
	// System converts a raw hardware timestamp to system time; ok is false if the relation of the clocks is not known
	// well enough at that time.
	System(raw instant.Time) (at instant.Time, ok bool)
}

// Options of a Conn. The zero value is usable.
type Options struct {
	// ReceiveBufferBytes and SendBufferBytes are the values for SO_RCVBUF and SO_SNDBUF; zero: DefaultBufferBytes. The
	// kernel may grant less (see Stats). Transmit timestamps are charged to the receive buffer, too.
	ReceiveBufferBytes, SendBufferBytes int
	// UserTimestamps takes user-space timestamps only, as on a system without others; else each packet has the best one that is
	// available.
	UserTimestamps bool
	// Hardware, if set, converts the network card's timestamps to system time. The card must have timestamping enabled
	// (SIOCSHWTSTAMP).
	Hardware HardwareClock
	// Device is the interface or VRF that all packets are sent and received on (SO_BINDTODEVICE); empty: any.
	Device string
}

// DefaultBufferBytes is the buffer size if Options has none: 50 ms of small packets at 180,000/s, which the kernel
// charges at some 800 bytes each.
const DefaultBufferBytes = 8 << 20

// StampWait is how long Receive waits for a packet's kernel timestamp before it reports the user-space one. Queues of a
// slow link delay packets by about a second; a packet that waits longer exceeds its session's timeout anyway.
const StampWait = 2 * time.Second

// StampDelay is how long a transmit timestamp that Send has read may wait for Receive, unless a packet, an error, a
// later timestamp or the number of waiting timestamps wakes Receive earlier: to wake another thread for timestamps
// alone takes longer than to send the packets.
const StampDelay = 50 * time.Millisecond

// Out is a packet to send.
type Out struct {
	Payload []byte
	// Peer is the destination; its family must be that of the socket.
	Peer netip.AddrPort
	// Source is the local address to send from; the zero Addr lets the kernel choose.
	Source netip.Addr
	// DSCP is 0..63 and TTL 1..255; zero means the socket's default (0 and the
	// system's net.ipv4.ip_default_ttl or hop limit).
	DSCP, TTL uint8
	// Segment, if above zero, makes the kernel cut Payload into packets of this many bytes, the last of which may be
	// shorter (UDP_SEGMENT, Linux 4.18): at most 64 packets and 65,507 bytes. It requires SendOptions.Unstamped;
	// otherwise Send returns EINVAL.
	Segment int
	// Cookie is returned with the packet's transmit timestamp.
	Cookie uint64
	// At is the system clock just before the system call; Send sets it.
	At instant.Time
}

// SendOptions apply to all packets of one SendAs. The zero value is that of Send.
type SendOptions struct {
	Fragmentation Fragmentation
	// NoChecksum omits the UDP checksum (SO_NO_CHECK). IPv4 only: with IPv6 it has no effect.
	NoChecksum bool
	// Unstamped: the kernel makes no transmit timestamps, and no TxStamp is returned.
	Unstamped bool
}

// Fragmentation selects what happens to a packet that is too long for a link.
type Fragmentation uint8

// The choices. The zero value is SystemFragmentation.
const (
	// SystemFragmentation is the system's default: it follows the path MTU that ICMP messages report
	// (net.ipv4.ip_no_pmtu_disc).
	SystemFragmentation Fragmentation = iota
	// NoFragmentation forbids fragmentation. IPv4's DF is set, and the path MTU of ICMP messages is ignored, as RFC
	// 8899 requires (IP_PMTUDISC_PROBE). A packet longer than the interface's own MTU is refused with EMSGSIZE.
	NoFragmentation
	// Fragmented: this host fragments the packet for its interface, and with IPv4 every router may (IP_PMTUDISC_DONT).
	Fragmented
)

// In is a received packet.
type In struct {
	// Payload lies in the Batch and is valid until its next use.
	Payload []byte
	Peer    netip.AddrPort
	// Local is the destination address of the packet, which a reply may use as Out.Source. The zero Addr if the kernel
	// did not report it.
	Local netip.Addr
	// Stamp is the receive timestamp. It is never absent: without a better one it is At, with origin User.
	Stamp sample.Stamp
	// At is the system clock just after the system call that read the packet.
	At instant.Time
	// TTL, DSCP and ECN are those of the IP header; TTL 0: the kernel did not report it.
	TTL, DSCP, ECN uint8
	// Truncated: the packet was longer than the Batch's buffers.
	Truncated bool
}

// TxStamp is the transmit timestamp of a packet of Send. With Options.Hardware a packet may have two: the kernel's
// first, then that of the card, which is more accurate.
type TxStamp struct {
	// Cookie is that of the Out.
	Cookie uint64
	Stamp  sample.Stamp
	// At is that of the Out. Stamp.At is never earlier. A kernel timestamp has Stamp.TXUncertainty set.
	At instant.Time
}

// Stats are counts since Open; they only grow.
type Stats struct {
	// Sent counts packets that the kernel accepted, SendErrors those it refused.
	Sent, SendErrors uint64
	// Received counts packets read, Truncated those of them that were truncated.
	Received, Truncated uint64
	// Dropped counts packets that the kernel dropped at this socket because its buffer was full (the counter of
	// SO_RXQ_OVFL, without packets of a wrong checksum as far as the host's RcvbufErrors and MemErrors show). It may
	// lag by 20 ms until Close.
	Dropped uint64
	// TxStamps and RxStamps count timestamps, indexed by sample.Origin (User, Kernel, Hardware).
	TxStamps, RxStamps [Origins]uint64
	// TxMissing counts packets sent without a kernel timestamp within StampWait.
	TxMissing uint64
	// TxRejected counts kernel timestamps that could not be attributed to one packet, or were earlier than the packet's
	// own At: the system clock was set back.
	TxRejected uint64
	// ReceiveBufferBytes and SendBufferBytes are what the kernel granted. It reports twice the value set, because it
	// includes its own overhead (socket(7)).
	ReceiveBufferBytes, SendBufferBytes int
}

// Origins is the length of the timestamp counts in Stats.
const Origins = int(sample.Hardware) + 1
