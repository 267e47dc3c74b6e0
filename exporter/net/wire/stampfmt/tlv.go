package stampfmt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// TLVType is the type octet of a TLV (RFC 8972 section 5.1). 240..251 are experimental, 252..254 for private use; 0 and
// 255 are reserved.
type TLVType uint8

// The supported types.
const (
	TypeExtraPadding         TLVType = 1
	TypeLocation             TLVType = 2
	TypeTimestampInformation TLVType = 3
	TypeClassOfService       TLVType = 4
	TypeDirectMeasurement    TLVType = 5
	TypeAccessReport         TLVType = 6
	TypeFollowUp             TLVType = 7
	TypeHMAC                 TLVType = 8
	TypeReceipt              TLVType = 251
)

// The flags octet of a TLV (RFC 8972 section 4). The other bits are reserved.
const (
	// FlagUnrecognized (U): the reflector does not support the type. A sender sets it, too: it is still set in replies
	// of a reflector that supports no TLVs and copies the octets after the base packet.
	FlagUnrecognized = 0x80
	// FlagMalformed (M): the TLV's length is wrong; octets after it were not parsed.
	FlagMalformed = 0x40
	// FlagIntegrity (I): the HMAC TLV did not verify, and no TLV was used.
	FlagIntegrity = 0x20
)

// senderFlags is what a sender must set (RFC 8972 section 4). The AppendTo of every TLV except the general one writes
// it; a reflector overwrites the octet.
const senderFlags = FlagUnrecognized

// maxValueBytes is the maximum of a TLV's two octets of length.
const maxValueBytes = 1<<16 - 1

// TLV is one type-length-value. Value aliases the packet that it was read from.
type TLV struct {
	Flags uint8
	Type  TLVType
	// Value is at most 65,535 octets.
	Value []byte
}

// ErrMalformedTLV means: a TLV exceeds the packet or has a wrong length.
var ErrMalformedTLV = errors.New("stampfmt: malformed TLV")

// NextTLV reads the first TLV of b, which starts after a base packet or the previous TLV, and returns the rest. The
// error is ErrMalformedTLV; if the header was complete, t has its flags and type. Only an error allocates.
func NextTLV(b []byte) (t TLV, rest []byte, err error) {
	if len(b) < TLVHeaderBytes {
		return t, nil, fmt.Errorf("%w: %d bytes of header, want %d", ErrMalformedTLV, len(b), TLVHeaderBytes)
	}
	n := int(be.Uint16(b[2:]))
	t.Flags, t.Type = b[0], TLVType(b[1])
	if n > len(b)-TLVHeaderBytes {
		return t, nil, fmt.Errorf("%w: length %d, %d left", ErrMalformedTLV, n, len(b)-TLVHeaderBytes)
	}
	t.Value = b[TLVHeaderBytes : TLVHeaderBytes+n : TLVHeaderBytes+n]
	return t, b[TLVHeaderBytes+n:], nil
}

// AppendTo appends the whole TLV, with the flags of t. A value too long for the length field is truncated.
func (t TLV) AppendTo(b []byte) []byte {
	v := t.Value[:min(len(t.Value), maxValueBytes)]
	return append(appendHeader(b, t.Flags, t.Type, len(v)), v...)
}

func appendHeader(b []byte, flags uint8, t TLVType, n int) []byte {
	return be.AppendUint16(append(b, flags, uint8(t)), uint16(n))
}

func wrongLength(t TLVType, got, want int) error {
	return fmt.Errorf("%w: type %d has %d bytes, want %d", ErrMalformedTLV, t, got, want)
}

// The value lengths that RFC 8972 defines, in octets.
const (
	timestampInformationBytes = 4
	classOfServiceBytes       = 4
	directMeasurementBytes    = 12
	followUpBytes             = 16
)

// TimestampInformation is the timestamping method of the reflector (RFC 8972 section 4.3); In is T2, Out is T3. A
// sender leaves it zero.
type TimestampInformation struct {
	// SyncIn is the synchronization source: 1 NTP, 2 PTP, 3 SSU or BITS, 4 a satellite or radio system, 5 none (RFC
	// 8972 section 5.4).
	SyncIn uint8
	// MethodIn is the timestamping method: 1 hardware, 2 software, 3 the control plane (RFC 8972 section 5.5).
	MethodIn uint8
	// SyncOut and MethodOut are those of T3.
	SyncOut, MethodOut uint8
}

// AppendTo appends the whole TLV.
func (v TimestampInformation) AppendTo(b []byte) []byte {
	b = appendHeader(b, senderFlags, TypeTimestampInformation, timestampInformationBytes)
	return append(b, v.SyncIn, v.MethodIn, v.SyncOut, v.MethodOut)
}

// ClassOfService requests and reports DSCP and ECN (RFC 8972 section 4.4 with erratum 8199): DSCP1 (6 bits) DSCP2 (6)
// ECN (2) RP (2) reserved (16).
type ClassOfService struct {
	// DSCP1, 0..63, is the DSCP that the sender requests for the reply.
	DSCP1 uint8
	// DSCP2, 0..63, and ECN, 0..3, are those of the received request.
	DSCP2, ECN uint8
	// RP is 1 if the reply has the DSCP of the request instead of the requested one; otherwise 0.
	RP uint8
}

// AppendTo appends the whole TLV. It writes the low bits of each field.
func (v ClassOfService) AppendTo(b []byte) []byte {
	b = appendHeader(b, senderFlags, TypeClassOfService, classOfServiceBytes)
	return be.AppendUint32(b, uint32(v.DSCP1&63)<<26|uint32(v.DSCP2&63)<<20|uint32(v.ECN&3)<<18|uint32(v.RP&3)<<16)
}

// ParseClassOfService reads the value. The error is ErrMalformedTLV.
func ParseClassOfService(v []byte) (c ClassOfService, err error) {
	if len(v) != classOfServiceBytes {
		return c, wrongLength(TypeClassOfService, len(v), classOfServiceBytes)
	}
	w := be.Uint32(v)
	return ClassOfService{uint8(w >> 26), uint8(w >> 20 & 63), uint8(w >> 18 & 3), uint8(w >> 16 & 3)}, nil
}

// DirectMeasurement counts packets (RFC 8972 section 4.5), modulo 2^32: those that the sender sent, and those that the
// reflector received and sent. A sender leaves the latter two zero.
type DirectMeasurement struct{ SenderTx, ReflectorRx, ReflectorTx uint32 }

// AppendTo appends the whole TLV.
func (v DirectMeasurement) AppendTo(b []byte) []byte {
	b = appendHeader(b, senderFlags, TypeDirectMeasurement, directMeasurementBytes)
	return be.AppendUint32(be.AppendUint32(be.AppendUint32(b, v.SenderTx), v.ReflectorRx), v.ReflectorTx)
}

// ParseDirectMeasurement reads the value. The error is ErrMalformedTLV.
func ParseDirectMeasurement(v []byte) (d DirectMeasurement, err error) {
	if len(v) != directMeasurementBytes {
		return d, wrongLength(TypeDirectMeasurement, len(v), directMeasurementBytes)
	}
	return DirectMeasurement{be.Uint32(v), be.Uint32(v[4:]), be.Uint32(v[8:])}, nil
}

// FollowUp is the transmit timestamp of an earlier reply (RFC 8972 section 4.7): sequence number (4 octets) timestamp
// (8) mode (1) reserved (3). The zero value is what a sender and a stateless reflector send.
type FollowUp struct {
	// Seq is the reflector's own number of the previous reply.
	Seq uint32
	// T3 is in the wire format of the packet's Error Estimate.
	T3 uint64
	// Mode is the timestamping method, as TimestampInformation.MethodIn; 0: there is no timestamp.
	Mode uint8
}

// AppendTo appends the whole TLV.
func (v FollowUp) AppendTo(b []byte) []byte {
	b = be.AppendUint32(appendHeader(b, senderFlags, TypeFollowUp, followUpBytes), v.Seq)
	return append(be.AppendUint64(b, v.T3), v.Mode, 0, 0, 0)
}

// ParseFollowUp reads the value. The error is ErrMalformedTLV.
func ParseFollowUp(v []byte) (f FollowUp, err error) {
	if len(v) != followUpBytes {
		return f, wrongLength(TypeFollowUp, len(v), followUpBytes)
	}
	return FollowUp{be.Uint32(v), be.Uint64(v[4:]), v[12]}, nil
}

// AppendPadding appends an Extra Padding TLV (RFC 8972 section 4.1) of n value octets, 0..65535, whose pattern depends
// on the packet's number and does not compress. It does not allocate if b has the capacity.
func AppendPadding(b []byte, n int, seq uint32) []byte {
	n = min(max(n, 0), maxValueBytes)
	b = appendHeader(b, senderFlags, TypeExtraPadding, n)
	at := len(b)
	b = slices.Grow(b, n)[:at+n]
	v := b[at:]
	i := 0
	for ; i <= len(v)-8; i += 8 {
		binary.LittleEndian.PutUint64(v[i:], paddingWord(seq, i))
	}
	last := paddingWord(seq, i)
	for ; i < len(v); i++ {
		v[i] = uint8(last)
		last >>= 8
	}
	return b
}

// CheckPadding reports whether v is what AppendPadding writes for seq.
func CheckPadding(v []byte, seq uint32) bool {
	i := 0
	for ; i <= len(v)-8; i += 8 {
		if binary.LittleEndian.Uint64(v[i:]) != paddingWord(seq, i) {
			return false
		}
	}
	last := paddingWord(seq, i)
	for ; i < len(v); i++ {
		if v[i] != uint8(last) {
			return false
		}
		last >>= 8
	}
	return true
}

// paddingWord returns the eight octets at offset at, little-endian: a hash of both numbers rather than a chain, so that
// the processor computes several in parallel.
func paddingWord(seq uint32, at int) uint64 {
	x := (uint64(seq)<<32 | uint64(at) | 1) * 0x9e3779b97f4a7c15
	return (x ^ x>>32) * 0xd6e8feb86659fd93
}
