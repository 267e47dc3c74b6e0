package stamp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"oneway.example/exporter/wire/timefmt"
)

const (
	// Port is the reflector's UDP port (RFC 8762 section 4.1).
	Port = 862
	// UnauthenticatedBytes and AuthenticatedBytes are the lengths of the base
	// packets (RFC 8762 sections 4.2 and 4.3).
	UnauthenticatedBytes = 44
	AuthenticatedBytes   = 112
	// MinSenderBytes is the shortest question: that of TWAMP-Test with the
	// padding that makes its answer fit (RFC 5357 section 4.1.2, RFC 8762 section 4.6).
	MinSenderBytes = 41
	// TLVHeaderBytes is what precedes the value of each TLV (RFC 8972 section 4).
	TLVHeaderBytes = 4
)

var be = binary.BigEndian

var (
	// ErrShort says that a packet has fewer octets than its kind needs.
	ErrShort = errors.New("stamp: short packet")
	// ErrHMAC says that a packet is damaged, forged, or of another key.
	ErrHMAC = errors.New("stamp: HMAC does not match")
)

// SenderPacket is a question. T1 is raw: its format is the Error Estimate's Z
// bit (package timefmt). An SSID of 0 is that of a sender without RFC 8972.
type SenderPacket struct {
	Seq   uint32
	T1    uint64
	Error timefmt.ErrorEstimate
	SSID  uint16
}

// ReflectorPacket is an answer. Seq is the reflector's own number, or a copy of
// SenderSeq if it keeps no state; T2, T3 and SenderT1 are raw; SenderTTL is the
// TTL with which the question arrived.
type ReflectorPacket struct {
	Seq         uint32
	T3          uint64
	Error       timefmt.ErrorEstimate
	SSID        uint16
	T2          uint64
	SenderSeq   uint32
	SenderT1    uint64
	SenderError timefmt.ErrorEstimate
	SenderTTL   uint8
}

// AppendTo appends the unauthenticated packet.
func (p SenderPacket) AppendTo(b []byte) []byte {
	b = be.AppendUint32(b, p.Seq)
	b = be.AppendUint64(b, p.T1)
	b = be.AppendUint16(b, uint16(p.Error))
	b = be.AppendUint16(b, p.SSID)
	return append(b, zeros[:28]...)
}

// AppendAuthenticatedTo appends the authenticated packet, HMAC included.
func (p SenderPacket) AppendAuthenticatedTo(b []byte, k *Key) []byte {
	at := len(b)
	b = be.AppendUint32(b, p.Seq)
	b = append(b, zeros[:12]...)
	b = be.AppendUint64(b, p.T1)
	b = be.AppendUint16(b, uint16(p.Error))
	b = be.AppendUint16(b, p.SSID)
	b = append(b, zeros[:84]...)
	PutHMAC(b[at:], k)
	return b
}

// ParseSender reads an unauthenticated question; what a TWAMP-Light question
// of 41..43 octets lacks is zero.
func ParseSender(b []byte) (p SenderPacket, err error) {
	if len(b) < MinSenderBytes {
		return p, fmt.Errorf("%w: %d bytes, want %d", ErrShort, len(b), MinSenderBytes)
	}
	return SenderPacket{
		Seq: be.Uint32(b), T1: be.Uint64(b[4:]), Error: timefmt.ErrorEstimate(be.Uint16(b[12:])), SSID: be.Uint16(b[14:]),
	}, nil
}

// ParseSenderUnverified reads an authenticated question without checking it.
func ParseSenderUnverified(b []byte) (p SenderPacket, err error) {
	if len(b) < AuthenticatedBytes {
		return p, fmt.Errorf("%w: %d bytes, want %d", ErrShort, len(b), AuthenticatedBytes)
	}
	return SenderPacket{
		Seq: be.Uint32(b), T1: be.Uint64(b[16:]), Error: timefmt.ErrorEstimate(be.Uint16(b[24:])), SSID: be.Uint16(b[26:]),
	}, nil
}

// ParseSenderAuthenticated reads and verifies an authenticated question.
func ParseSenderAuthenticated(b []byte, k *Key) (p SenderPacket, err error) {
	if p, err = ParseSenderUnverified(b); err == nil && !k.VerifyBase(b) {
		err = ErrHMAC
	}
	return p, err
}

// AppendTo appends the unauthenticated answer.
func (p ReflectorPacket) AppendTo(b []byte) []byte {
	b = be.AppendUint32(b, p.Seq)
	b = be.AppendUint64(b, p.T3)
	b = be.AppendUint16(b, uint16(p.Error))
	b = be.AppendUint16(b, p.SSID)
	b = be.AppendUint64(b, p.T2)
	b = be.AppendUint32(b, p.SenderSeq)
	b = be.AppendUint64(b, p.SenderT1)
	b = be.AppendUint16(b, uint16(p.SenderError))
	return append(b, 0, 0, p.SenderTTL, 0, 0, 0)
}

// AppendAuthenticatedTo appends the authenticated answer, HMAC included.
func (p ReflectorPacket) AppendAuthenticatedTo(b []byte, k *Key) []byte {
	at := len(b)
	b = be.AppendUint32(b, p.Seq)
	b = append(b, zeros[:12]...)
	b = be.AppendUint64(b, p.T3)
	b = be.AppendUint16(b, uint16(p.Error))
	b = be.AppendUint16(b, p.SSID)
	b = append(b, zeros[:4]...)
	b = be.AppendUint64(b, p.T2)
	b = append(b, zeros[:8]...)
	b = be.AppendUint32(b, p.SenderSeq)
	b = append(b, zeros[:12]...)
	b = be.AppendUint64(b, p.SenderT1)
	b = be.AppendUint16(b, uint16(p.SenderError))
	b = append(b, zeros[:6]...)
	b = append(b, p.SenderTTL)
	b = append(b, zeros[:31]...)
	PutHMAC(b[at:], k)
	return b
}

// ParseReflector reads an unauthenticated answer.
func ParseReflector(b []byte) (p ReflectorPacket, err error) {
	if len(b) < MinSenderBytes {
		return p, fmt.Errorf("%w: %d bytes, want %d", ErrShort, len(b), MinSenderBytes)
	}
	return ReflectorPacket{
		Seq: be.Uint32(b), T3: be.Uint64(b[4:]), Error: timefmt.ErrorEstimate(be.Uint16(b[12:])), SSID: be.Uint16(b[14:]),
		T2: be.Uint64(b[16:]), SenderSeq: be.Uint32(b[24:]), SenderT1: be.Uint64(b[28:]),
		SenderError: timefmt.ErrorEstimate(be.Uint16(b[36:])), SenderTTL: b[40],
	}, nil
}

// ParseReflectorAuthenticated reads and verifies an authenticated answer.
func ParseReflectorAuthenticated(b []byte, k *Key) (p ReflectorPacket, err error) {
	if len(b) < AuthenticatedBytes {
		return p, fmt.Errorf("%w: %d bytes, want %d", ErrShort, len(b), AuthenticatedBytes)
	}
	p = ReflectorPacket{
		Seq: be.Uint32(b), T3: be.Uint64(b[16:]), Error: timefmt.ErrorEstimate(be.Uint16(b[24:])), SSID: be.Uint16(b[26:]),
		T2: be.Uint64(b[32:]), SenderSeq: be.Uint32(b[48:]), SenderT1: be.Uint64(b[64:]),
		SenderError: timefmt.ErrorEstimate(be.Uint16(b[72:])), SenderTTL: b[80],
	}
	if !k.VerifyBase(b) {
		return p, ErrHMAC
	}
	return p, nil
}

// PutT3 overwrites the transmit stamp of a packet in place: T1 of a question,
// T3 of an answer.
func PutT3(b []byte, authenticated bool, t3 uint64) {
	if authenticated {
		be.PutUint64(b[16:], t3)
		return
	}
	be.PutUint64(b[4:], t3)
}

var zeros [AuthenticatedBytes]byte
