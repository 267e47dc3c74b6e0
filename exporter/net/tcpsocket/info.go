package tcpsocket

import (
	"errors"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/ipheader"
)

// Info is the kernel's state of a connection (TCP_INFO, linux/tcp.h). Its counters are totals of the
// connection. All fields have a fixed size, for encoding/binary.
type Info struct {
	// RTT is the smoothed round-trip time and RTTVar its mean deviation (RFC 6298); MinRTT is the least of
	// the kernel's window of 5 min, 0 before the first sample. RTO is the retransmission timeout.
	RTT, RTTVar, MinRTT, RTO time.Duration
	// ReceiverRTT is the round-trip time of the receiving end: from its acknowledgments to data that echo their
	// timestamps, smoothed, or without timestamps the time of a receive window; 0 before the first sample.
	ReceiverRTT time.Duration
	// MSS is the payload of a full segment that this end sends, in bytes.
	MSS int64
	// Cwnd is the congestion window and Ssthresh the slow-start threshold, in segments; a threshold of
	// Unlimited was not set yet.
	Cwnd, Ssthresh int64
	// Unacked are segments that were sent and not acknowledged, Lost and Sacked those of them.
	Unacked, Lost, Sacked int64
	// NotSent are payload bytes in the send buffer that were not sent yet.
	NotSent int64
	// PacingRate and DeliveryRate (the highest recent rate of acknowledged data) are in bytes a second.
	PacingRate, DeliveryRate int64
	// Acked and Received are payload bytes that the peer and this end have acknowledged; Acked
	// also counts the SYN and the FIN, one each. Sent are payload bytes with retransmissions, of which Retransmitted.
	Acked, Received, Sent, Retransmitted int64
	// SegmentsOut and SegmentsIn count all segments, RetransmittedSegments those sent again.
	SegmentsOut, SegmentsIn, RetransmittedSegments int64
	// Delivered are segments that the peer has acknowledged, of which DeliveredCE by acknowledgments with the echo of
	// a congestion mark: more than were marked, as a receiver repeats the echo until the sender has reduced its window
	// (RFC 3168 section 6.1.3). ReceivedCE are segments that arrived here with a mark, if Known(ReceivedCE).
	Delivered, DeliveredCE, ReceivedCE int64
	// Reordered counts events of reordering, Duplicates segments that arrived twice at the peer (DSACK).
	Reordered, Duplicates int64
	// Busy is the time with data to send: of it RwndLimited waited for the peer's receive window and
	// SndbufLimited for data, as the send buffer was full of unacknowledged bytes.
	Busy, RwndLimited, SndbufLimited time.Duration
	// RTOs counts expired retransmission timeouts, if Known(RTOs).
	RTOs int64
	// SendWindow is the peer's receive window in bytes, if Known(SendWindow).
	SendWindow int64
	// Negotiated has options of the handshake: a mask of Timestamps, SACK, WindowScale and ECN.
	Negotiated uint8
	// Length is the number of bytes that the kernel has filled.
	Length uint16
}

// Unlimited is Ssthresh before the first loss (TCP_INFINITE_SSTHRESH).
const Unlimited = 0x7fffffff

// Bits of Info.Negotiated (TCPI_OPT_*).
const (
	Timestamps  = 1
	SACK        = 2
	WindowScale = 4
	ECN         = 8
)

// Field is a field that not all supported kernels have.
type Field uint8

// The fields, with the first kernel.
const (
	SendWindow Field = iota // 5.4
	RTOs                    // 6.7
	ReceivedCE              // 6.18
)

// raw is the kernel's structure.
type raw = unix.TCPInfo

// required is the length up to the last field of kernel 4.19.
const required = unsafe.Offsetof(raw{}.Reord_seen) + 4

// Known reports whether the kernel has filled a field.
func (i *Info) Known(f Field) bool {
	return uintptr(i.Length) >= [...]uintptr{SendWindow: unsafe.Offsetof(raw{}.Snd_wnd) + 4, RTOs: unsafe.Offsetof(raw{}.Total_rto) + 2, ReceivedCE: unsafe.Offsetof(raw{}.Received_ce) + 4}[f]
}

var errShort = errors.New("tcpsocket: the kernel's TCP_INFO has no counters of sent bytes; want kernel 4.19 or later")

// Info returns the state of the connection.
func (c *Conn) Info() (Info, error) {
	var t raw
	size, err := c.tcpInfo(&t)
	if err != nil {
		return Info{}, err
	}
	return parse(&t, size)
}

// RTT returns the smoothed round-trip time of a connection; zero: it is unknown.
func RTT(nc net.Conn) time.Duration {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return 0
	}
	c, err := wrap(t)
	if err != nil {
		return 0
	}
	i, _ := c.Info() // zero with an error
	return i.RTT
}

func (c *Conn) tcpInfo(t *raw) (size uint32, err error) {
	size = uint32(unsafe.Sizeof(*t))
	err = c.control(func(fd int) error {
		if c.stamps != nil {
			c.stamps.busy.start()
			defer c.stamps.busy.stop()
		}
		return getsockopt(fd, unix.IPPROTO_TCP, unix.TCP_INFO, unsafe.Pointer(t), &size)
	})
	return size, err
}

// parse converts the first size bytes of the kernel's structure; the others are zero.
func parse(t *raw, size uint32) (Info, error) {
	if uintptr(size) < required {
		return Info{}, errShort
	}
	if t.Min_rtt == ^uint32(0) {
		t.Min_rtt = 0
	}
	us := func(v uint64) time.Duration { return time.Duration(v) * time.Microsecond }
	return Info{
		RTT: us(uint64(t.Rtt)), RTTVar: us(uint64(t.Rttvar)), MinRTT: us(uint64(t.Min_rtt)), RTO: us(uint64(t.Rto)), ReceiverRTT: us(uint64(t.Rcv_rtt)),
		MSS: int64(t.Snd_mss), Cwnd: int64(t.Snd_cwnd), Ssthresh: int64(t.Snd_ssthresh),
		Unacked: int64(t.Unacked), Lost: int64(t.Lost), Sacked: int64(t.Sacked), NotSent: int64(t.Notsent_bytes),
		PacingRate: int64(min(t.Pacing_rate, 1<<62)), DeliveryRate: int64(t.Delivery_rate),
		Acked: int64(t.Bytes_acked), Received: int64(t.Bytes_received), Sent: int64(t.Bytes_sent), Retransmitted: int64(t.Bytes_retrans),
		SegmentsOut: int64(t.Segs_out), SegmentsIn: int64(t.Segs_in), RetransmittedSegments: int64(t.Total_retrans),
		Delivered: int64(t.Delivered), DeliveredCE: int64(t.Delivered_ce), ReceivedCE: int64(t.Received_ce),
		Reordered: int64(t.Reord_seen), Duplicates: int64(t.Dsack_dups),
		Busy: us(t.Busy_time), RwndLimited: us(t.Rwnd_limited), SndbufLimited: us(t.Sndbuf_limited),
		RTOs: int64(t.Total_rto), SendWindow: int64(t.Snd_wnd),
		Negotiated: t.Options, Length: uint16(size),
	}, nil
}

// Outstanding returns the payload bytes that were sent and not acknowledged, each once; the
// SYN and the FIN can make it smaller by one each.
func (i *Info) Outstanding() int64 { return max(0, i.Sent-i.Retransmitted-i.Acked) }

// HeaderBytes returns the bytes of IP and TCP headers of a data segment, without IP options and SACK
// blocks.
func (i *Info) HeaderBytes(ipv6 bool) int64 {
	n := ipheader.WithIP(ipv6, ipheader.TCP)
	if i.Negotiated&Timestamps != 0 {
		n += ipheader.TCPTimestamps
	}
	return int64(n)
}

// SentIPBytes returns the IP bytes that this end has sent: retransmissions, acknowledgments and headers
// included, SACK blocks not. The kernel's segment counter wraps at 2^32.
func (i *Info) SentIPBytes(ipv6 bool) int64 { return i.Sent + i.SegmentsOut*i.HeaderBytes(ipv6) }
