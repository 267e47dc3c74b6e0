// Package tcpstamp defines what both ends of a TCP connection record about sampled bytes of its stream and about its
// handshake, from timestamps of their kernels (SO_TIMESTAMPING) and not from a capture.
//
// A sampled byte is named by its Offset: the number of payload bytes of the flow up to it, itself included. Both ends
// choose the same bytes without messages: those at multiples of Grid<<level, where each end raises its level when it has
// too many samples. The sets of both ends are then nested, and the join of both is that of the higher level.
//
// Times are CLOCK_REALTIME of the end that records them; zero: absent. All fields have a fixed size, for encoding/binary.
package tcpstamp

import (
	"time"

	"oneway.example/exporter/core/instant"
)

// Grid is the distance of sampled bytes at level 0.
const Grid = 4 << 10

// Sent is what the sending end knows of a sampled byte.
type Sent struct {
	Offset int64
	// Written is when the write of the byte began. Scheduled is when the segment with the byte last entered the packet
	// scheduler before First (SCM_TSTAMP_SCHED), which may have dropped it before; First and Last are when it left the host
	// for the first and the last time (SCM_TSTAMP_SND), Acked is when an acknowledgment of it was processed (SCM_TSTAMP_ACK).
	Written, Scheduled, First, Last, Acked instant.Time
	// AckedEarly is how much earlier than Acked the acknowledgment may have arrived: it waited in the backlog of the
	// socket while a system call held that.
	AckedEarly time.Duration
	// Transmissions is the number of times that the segment left the host.
	Transmissions int32
	_             int32
}

// Received is what the receiving end knows of a sampled byte.
type Received struct {
	Offset int64
	// At is the kernel's timestamp of the last part of the data that was read with the byte; the byte itself arrived up to
	// Early earlier. If Reordered is set, it may have arrived at any time before Read. Zero: the read had no stamp.
	At    instant.Time
	Early time.Duration
	// NotBefore is a time at which the byte could not be read yet: the receiver had found the socket empty. Read is when
	// the read with the byte had returned. An end-to-end connection acknowledges the byte after NotBefore.
	NotBefore, Read instant.Time
	// Doubt is when the receiver last noticed that data had arrived out of order; zero: never, or before all data that
	// could be affected. Reordered is set if the byte may be affected: the kernel may have joined it with data that
	// arrived earlier. A byte that was first sent after Doubt is not affected, as the data out of order was sent before it.
	Doubt     instant.Time
	Reordered bool
	_         [7]byte
}

// Ack is an acknowledgment that advanced, in a burst of consecutive segments that were all sampled.
type Ack struct {
	// Burst is the number of the burst in the flow.
	Burst int32
	_     int32
	// Offset is that of the last byte that it acknowledged.
	Offset int64
	// At is when it was processed, and Early how much earlier it may have arrived.
	At    instant.Time
	Early time.Duration
}

// Handshake is what one end knows of the connection's handshake.
type Handshake struct {
	// SYN is whether this end has the SYN as it arrived: the accepting end has, if the kernel saved it (TCP_SAVED_SYN).
	SYN bool
	// Timestamps and SACK are whether the options were negotiated, as this end knows.
	Timestamps, SACK bool
	// TTL is the remaining TTL or hop limit of the arrived SYN, or, at the connecting end, the one that it sends with.
	TTL uint8
	// MSS is that in the arrived SYN or, at the connecting end, the one that it announced. PeerScale is the window
	// scale that the peer announced, as it arrived here, OwnScale the one that this end announced; -1: none.
	MSS                 int32
	PeerScale, OwnScale int8
	_                   [2]byte
	// TSval is the timestamp value in the arrived SYN or, at the connecting end, the one that its own SYN had, computed
	// back from the present one (TCP_TIMESTAMP), up to TSvalError units of a millisecond wrong.
	TSval, TSvalError uint32
}
