package stamp

import (
	"errors"
	"fmt"
)

// TLVType is the type octet of a TLV (RFC 8972 section 5.1).
type TLVType uint8

// The types that are known here.
const (
	TypeExtraPadding         TLVType = 1
	TypeLocation             TLVType = 2
	TypeTimestampInformation TLVType = 3
	TypeClassOfService       TLVType = 4
	TypeDirectMeasurement    TLVType = 5
	TypeAccessReport         TLVType = 6
	TypeFollowUp             TLVType = 7
	TypeHMAC                 TLVType = 8
	TypeReceipt              TLVType = 252
)

// The flags octet of a TLV (RFC 8972 section 4).
const (
	// FlagUnrecognised (U): the reflector does not know the type.
	FlagUnrecognised = 0x80
	// FlagMalformed (M): the TLV's length is wrong.
	FlagMalformed = 0x40
	// FlagIntegrity (I): the HMAC TLV did not verify.
	FlagIntegrity = 0x20
)

// TLV is one type-length-value; Value aliases the packet.
type TLV struct {
	Flags uint8
	Type  TLVType
	Value []byte
}

// ErrMalformedTLV says that a TLV runs past the packet's end or has a wrong length.
var ErrMalformedTLV = errors.New("stamp: malformed TLV")

// NextTLV reads the first TLV of b and returns what follows it.
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

// AppendTo appends the whole TLV.
func (t TLV) AppendTo(b []byte) []byte {
	return append(appendHeader(b, t.Flags, t.Type, len(t.Value)), t.Value...)
}

func appendHeader(b []byte, flags uint8, t TLVType, n int) []byte {
	return be.AppendUint16(append(b, flags, uint8(t)), uint16(n))
}

func wrongLength(t TLVType, got, want int) error {
	return fmt.Errorf("%w: type %d has %d bytes, want %d", ErrMalformedTLV, t, got, want)
}

// TimestampInformation says how the stamps were taken (RFC 8972 section 4.3).
type TimestampInformation struct{ SyncIn, MethodIn, SyncOut, MethodOut uint8 }

// AppendTo appends the whole TLV.
func (v TimestampInformation) AppendTo(b []byte) []byte {
	return append(appendHeader(b, 0, TypeTimestampInformation, 4), v.SyncIn, v.MethodIn, v.SyncOut, v.MethodOut)
}

// ParseTimestampInformation reads the value.
func ParseTimestampInformation(v []byte) (t TimestampInformation, err error) {
	if len(v) != 4 {
		return t, wrongLength(TypeTimestampInformation, len(v), 4)
	}
	return TimestampInformation{v[0], v[1], v[2], v[3]}, nil
}

// ClassOfService asks for and reports DiffServ marks (RFC 8972 section 4.4):
// DSCP1 asked for the answer, DSCP2 and ECN as the question arrived, RP why
// the answer is not marked as asked.
type ClassOfService struct{ DSCP1, DSCP2, ECN, RP uint8 }

// AppendTo appends the whole TLV.
func (v ClassOfService) AppendTo(b []byte) []byte {
	b = appendHeader(b, 0, TypeClassOfService, 4)
	return be.AppendUint32(b, uint32(v.DSCP1&63)<<26|uint32(v.DSCP2&63)<<20|uint32(v.ECN&3)<<18|uint32(v.RP&3)<<16)
}

// ParseClassOfService reads the value.
func ParseClassOfService(v []byte) (c ClassOfService, err error) {
	if len(v) != 4 {
		return c, wrongLength(TypeClassOfService, len(v), 4)
	}
	w := be.Uint32(v)
	return ClassOfService{uint8(w >> 26), uint8(w >> 20 & 63), uint8(w >> 18 & 3), uint8(w >> 16 & 3)}, nil
}

// DirectMeasurement counts in-profile packets (RFC 8972 section 4.5).
type DirectMeasurement struct{ SenderTx, ReflectorRx, ReflectorTx uint32 }

// AppendTo appends the whole TLV.
func (v DirectMeasurement) AppendTo(b []byte) []byte {
	b = appendHeader(b, 0, TypeDirectMeasurement, 12)
	return be.AppendUint32(be.AppendUint32(be.AppendUint32(b, v.SenderTx), v.ReflectorRx), v.ReflectorTx)
}

// ParseDirectMeasurement reads the value.
func ParseDirectMeasurement(v []byte) (d DirectMeasurement, err error) {
	if len(v) != 12 {
		return d, wrongLength(TypeDirectMeasurement, len(v), 12)
	}
	return DirectMeasurement{be.Uint32(v), be.Uint32(v[4:]), be.Uint32(v[8:])}, nil
}

// FollowUp carries the true transmit stamp of the answer numbered Seq (RFC
// 8972 section 4.7). Mode says how it was taken; 0: there is none yet.
type FollowUp struct {
	Seq  uint32
	T3   uint64
	Mode uint8
}

// AppendTo appends the whole TLV.
func (v FollowUp) AppendTo(b []byte) []byte {
	b = be.AppendUint32(appendHeader(b, 0, TypeFollowUp, 16), v.Seq)
	return append(be.AppendUint64(b, v.T3), v.Mode, 0, 0, 0)
}

// ParseFollowUp reads the value.
func ParseFollowUp(v []byte) (f FollowUp, err error) {
	if len(v) != 16 {
		return f, wrongLength(TypeFollowUp, len(v), 16)
	}
	return FollowUp{be.Uint32(v), be.Uint64(v[4:]), v[12]}, nil
}

// AppendPadding appends an Extra Padding TLV (RFC 8972 section 4.1) of n value
// octets whose pattern depends on the packet's number.
func AppendPadding(b []byte, n int, seq uint32) []byte {
	b = appendHeader(b, 0, TypeExtraPadding, n)
	x := patternSeed(seq)
	for range n {
		x = patternNext(x)
		b = append(b, uint8(x>>24))
	}
	return b
}

// CheckPadding reports whether v is as AppendPadding wrote it for seq.
func CheckPadding(v []byte, seq uint32) bool {
	x := patternSeed(seq)
	for _, got := range v {
		if x = patternNext(x); got != uint8(x>>24) {
			return false
		}
	}
	return true
}

func patternSeed(seq uint32) uint32      { return seq*2654435761 ^ 0x9e3779b9 }
func patternNext(x uint32) (next uint32) { return x*1664525 + 1013904223 }
