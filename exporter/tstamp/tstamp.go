// Package tstamp is a UDP socket that says when packets met the network: it
// hands out and takes in batches of packets with the kernel's (or the network
// card's) transmit and receive time stamps beside them.
//
// The stamps are those of SO_TIMESTAMPING (the kernel's
// Documentation/networking/timestamping.rst). A transmit stamp comes back on
// the socket's error queue under a number; the package matches it with the
// cookie that the caller gave the packet. Where the kernel gives no stamp, the
// clock reading of user space stands in, and the stamp's origin says so.
//
// The package knows no protocol: payloads are opaque.
package tstamp

import (
	"net/netip"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// Mode says whose time stamps are wanted.
type Mode uint8

// The modes. The zero value is Auto.
const (
	// Auto takes the best that there is, packet by packet.
	Auto Mode = iota
	// Off takes user-space stamps only.
	Off
)

// HardwareClock relates a network card's own clock to the system clock.
type HardwareClock interface {
	// System converts a raw hardware stamp to system time; ok is false if the
	// relation is not known well enough at that time.
	System(raw instant.Time) (at instant.Time, ok bool)
}

// Options of a Conn. The zero value is good.
type Options struct {
	// ReceiveBufferBytes and SendBufferBytes are what to ask of SO_RCVBUF and
	// SO_SNDBUF; zero: DefaultBufferBytes. The kernel may give less (see Stats).
	// Transmit stamps wait in the receive buffer's quota too.
	ReceiveBufferBytes, SendBufferBytes int
	Timestamps                          Mode
	// Hardware, if set, makes use of the network card's stamps, converted by
	// it. The card itself must have been told to stamp (SIOCSHWTSTAMP).
	Hardware HardwareClock
	// Device is the interface or VRF that all packets go out and come in by
	// (SO_BINDTODEVICE); empty: any.
	Device string
}

// DefaultBufferBytes is asked for when Options asks for nothing: 50 ms of small
// packets at 180,000/s, which the kernel charges at some 800 bytes each.
const DefaultBufferBytes = 8 << 20

// StampWait is how long Receive waits for a packet's kernel stamp before it
// reports the user-space one. Queues of a slow link hold packets for about a
// second; a packet that waits longer is lost to its session anyway.
const StampWait = 2 * time.Second

// StampDelay is how long a transmit stamp that Send has found may wait for Receive, unless a
// packet, an error, a stamp that came later, or the number of stamps that wait, brings Receive to
// it before: waking another thread for stamps alone takes longer than to send the packets.
const StampDelay = 50 * time.Millisecond

// Out is a packet to be sent.
type Out struct {
	Payload []byte
	// Peer is where to; its family must be that of the socket.
	Peer netip.AddrPort
	// Source is the local address to send from; the zero Addr lets the kernel choose.
	Source netip.Addr
	// DSCP is 0..63 and TTL 1..255; zero means the socket's default (0 and the
	// system's net.ipv4.ip_default_ttl or hop limit).
	DSCP, TTL uint8
	// Segment, if above zero, has the kernel cut Payload into packets of so many
	// bytes, the last of which may be shorter (UDP_SEGMENT, Linux 4.18): at most 64
	// packets and 65,507 bytes. Only with Manner.Unstamped: else it is refused with EINVAL.
	Segment int
	// Cookie comes back with the packet's transmit stamp.
	Cookie uint64
	// At is set by Send: the system clock just before the system call.
	At instant.Time
}

// SendOptions is how SendAs sends, beside what each Out says. The zero value is that of
// Send.
type SendOptions struct {
	Fragmentation Fragmentation
	// NoChecksum leaves the UDP checksum out (SO_NO_CHECK). IPv4 only: with IPv6 it
	// has no effect.
	NoChecksum bool
	// Unstamped: no transmit stamps are made, and no TxStamp comes back.
	Unstamped bool
}

// Fragmentation says what may be done to a packet that is too long for a link.
type Fragmentation uint8

// The choices. The zero value is SystemFragmentation.
const (
	// SystemFragmentation is the system's own way: to follow the path MTU that ICMP
	// messages tell (net.ipv4.ip_no_pmtu_disc).
	SystemFragmentation Fragmentation = iota
	// NoFragmentation: nobody may fragment it. IPv4's DF is set, and what ICMP
	// messages say of the path's MTU is not heeded, as RFC 8899 wants it
	// (IP_PMTUDISC_PROBE). One that is longer than the interface's own MTU is refused
	// with EMSGSIZE.
	NoFragmentation
	// Fragmented: this host fragments it for its interface, and with IPv4 every router
	// may (IP_PMTUDISC_DONT).
	Fragmented
)

// In is a packet that arrived.
type In struct {
	// Payload lies in the Batch and is valid until its next use.
	Payload []byte
	Peer    netip.AddrPort
	// Local is the address it was sent to, fit to be Out.Source of a reply.
	// The zero Addr if the kernel did not say.
	Local netip.Addr
	// Stamp is when it arrived; never absent: at worst it is At, with origin User.
	Stamp sample.Stamp
	// At is the system clock just after the system call that read the packet.
	At instant.Time
	// TTL, DSCP and ECN are those of the IP header; TTL 0: the kernel did not say.
	TTL, DSCP, ECN uint8
	// Truncated: the packet was longer than the Batch's buffers.
	Truncated bool
}

// TxStamp is when a packet of Send left. With Options.Hardware a packet may
// have two: the kernel's first, then the better one of the card.
type TxStamp struct {
	// Cookie is that of the Out.
	Cookie uint64
	Stamp  sample.Stamp
	// At is that of the Out. Stamp.At is never before it. Stamp.TXUncertainty is set for
	// the kernel's.
	At instant.Time
}

// Stats are counts since Open; they only grow.
type Stats struct {
	// Sent counts packets taken by the kernel, SendErrors those refused.
	Sent, SendErrors uint64
	// Received counts packets read, Truncated those of them cut short.
	Received, Truncated uint64
	// Dropped counts packets that the kernel dropped at this socket for want of
	// buffer (the counter behind SO_RXQ_OVFL, without those of a wrong checksum as far as the
	// host's RcvbufErrors and MemErrors tell). It may be 20 ms behind until Close.
	Dropped uint64
	// TxStamps and RxStamps count stamps, indexed by sample.Origin (User,
	// Kernel, Hardware).
	TxStamps, RxStamps [Origins]uint64
	// TxMissing counts packets sent whose kernel stamp never came.
	TxMissing uint64
	// TxRejected counts kernel stamps that fitted no packet for certain, or were
	// earlier than the packet's own At: the system clock was set back.
	TxRejected uint64
	// ReceiveBufferBytes and SendBufferBytes are what the kernel granted. It
	// reports twice what was asked: its own overhead is counted in (socket(7)).
	ReceiveBufferBytes, SendBufferBytes int
}

// Origins is the length of the stamp counts in Stats.
const Origins = int(sample.Hardware) + 1
