package stamp

import (
	"errors"
	"fmt"
)

// TLVType is the type octet of a TLV (RFC 8972 section 5.1). 240..251 are for
// experiments, 252..254 for private use; 0 and 255 are reserved.
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
	TypeReceipt              TLVType = 251
)

// The flags octet of a TLV (RFC 8972 section 4). The other bits are reserved.
const (
	// FlagUnrecognised (U): the reflector does not know the type. A sender sets it
	// too: it comes back set from a reflector that knows no TLVs at all and
	// returns what follows the base packet as it came.
	FlagUnrecognised = 0x80
	// FlagMalformed (M): the TLV's length is wrong, and nothing after it was read.
	FlagMalformed = 0x40
	// FlagIntegrity (I): the HMAC TLV did not verify, and no TLV was used.
	FlagIntegrity = 0x20
)

// senderFlags is what a sender must set (RFC 8972 section 4). The AppendTo of
// every TLV but the general one writes it; a reflector overwrites the octet.
const senderFlags = FlagUnrecognised

// maxValueBytes is what a TLV's two octets of length can tell.
const maxValueBytes = 1<<16 - 1

// TLV is one type-length-value. Value aliases the packet it was read from.
type TLV struct {
	Flags uint8
	Type  TLVType
	// Value is at most 65,535 octets.
	Value []byte
}

// ErrMalformedTLV says that a TLV runs past the packet's end or has a wrong length.
var ErrMalformedTLV = errors.New("stamp: malformed TLV")

// NextTLV reads the first TLV of b, what follows a base packet or the TLV before,
// and returns what follows it. The error is ErrMalformedTLV; if the header was
// whole, t has its flags and type. Only an error allocates.
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

// AppendTo appends the whole TLV, with the flags that t has. A value that is too
// long for the length field is cut.
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
