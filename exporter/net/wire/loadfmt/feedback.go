package loadfmt

import (
	"encoding/binary"
	"math"
)

// Lengths of the packets of feedback. Both are shorter than two Data packets with a content.
const (
	ReportBytes = HeaderBytes + 40
	OrderBytes  = HeaderBytes + 16
)

// Status is the receiver's account of a stream so far (the Status PDU of RFC 9946 in meaning, not in format). All
// counts are since the stream began, so that the difference of any two is known, even if others between them were lost:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            serial                             |
//	|                           expected                            |
//	|                            packets                            |
//	|                           reordered                           |
//	|                          duplicates                           |
//	|                 delay variation, microseconds                 |
//	|                   octets of UDP payload (64)                  |
//	|                       elapsed, ns (64)                        |
type Status struct {
	// Serial increases with each; one that is not larger than the last is out of date. The first is 1.
	Serial uint32
	// Expected is one more than the highest number received; of these, Packets were received.
	Expected, Packets uint32
	// Reordered were received after a later one, Duplicates again.
	Reordered, Duplicates uint32
	// Variation is the mean delay of the packets since the previous Status, in microseconds above the smallest of all;
	// NoVariation: not known.
	Variation uint32
	// Bytes is the UDP payload of Packets.
	Bytes uint64
	// Elapsed is nanoseconds since the receiver started to count.
	Elapsed uint64
}

// NoVariation is an unknown Variation.
const NoVariation = math.MaxUint32

// AppendReport appends a Report of a transfer.
func AppendReport(b []byte, session uint64, transfer uint16, s Status) []byte {
	b = Header{Type: Report, Transfer: transfer, Session: session, Seq: s.Serial, PayloadBytes: ReportBytes}.AppendTo(b)
	for _, v := range [...]uint32{s.Serial, s.Expected, s.Packets, s.Reordered, s.Duplicates, s.Variation} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	b = binary.BigEndian.AppendUint64(b, s.Bytes)
	return binary.BigEndian.AppendUint64(b, s.Elapsed)
}

// ParseStatus returns the Status of a Report with the valid header h; false: the packet is not a Report, or a value is
// invalid.
func ParseStatus(b []byte, h Header) (s Status, ok bool) {
	if h.Type != Report || len(b) != ReportBytes || h.PayloadBytes != ReportBytes {
		return Status{}, false
	}
	b = b[HeaderBytes:]
	for i, v := range [...]*uint32{&s.Serial, &s.Expected, &s.Packets, &s.Reordered, &s.Duplicates, &s.Variation} {
		*v = binary.BigEndian.Uint32(b[4*i:])
	}
	s.Bytes, s.Elapsed = binary.BigEndian.Uint64(b[24:]), binary.BigEndian.Uint64(b[32:])
	if s.Serial == 0 || s.Packets > s.Expected || s.Bytes > math.MaxInt64 || s.Elapsed > math.MaxInt64 {
		return Status{}, false
	}
	return s, true
}

// Pace is the rate requested from a sender: Interval nanoseconds from packet to packet.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                            serial                             |
//	|                         reserved (0)                          |
//	|                       interval, ns (64)                       |
type Pace struct {
	// Serial increases with each; one that is not larger than the last is out of date. The first is 1.
	Serial   uint32
	Interval uint64
}

// AppendOrder appends an Order for a transfer.
func AppendOrder(b []byte, session uint64, transfer uint16, p Pace) []byte {
	b = Header{Type: Order, Transfer: transfer, Session: session, Seq: p.Serial, PayloadBytes: OrderBytes}.AppendTo(b)
	b = binary.BigEndian.AppendUint32(b, p.Serial)
	b = binary.BigEndian.AppendUint32(b, 0)
	return binary.BigEndian.AppendUint64(b, p.Interval)
}

// ParsePace returns the Pace of an Order with the valid header h; false: the packet is not an Order, or a value is
// invalid.
func ParsePace(b []byte, h Header) (p Pace, ok bool) {
	if h.Type != Order || len(b) != OrderBytes || h.PayloadBytes != OrderBytes {
		return Pace{}, false
	}
	b = b[HeaderBytes:]
	p = Pace{Serial: binary.BigEndian.Uint32(b), Interval: binary.BigEndian.Uint64(b[8:])}
	if p.Serial == 0 || p.Interval == 0 || p.Interval > math.MaxInt64 {
		return Pace{}, false
	}
	return p, true
}
