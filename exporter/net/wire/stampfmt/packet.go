// Package stampfmt reads and writes the packets of STAMP, the Simple Two-Way Active Measurement Protocol (RFC 8762), with
// its optional extensions (RFC 8972). All integers are big-endian. The package has no sockets and no clocks. A request
// is a test packet of the Session-Sender or a statistics query, a reply is a reflected packet.
//
// Request, unauthenticated (44 octets) and authenticated (112):
//
//	0-3 Sequence Number  4-11 T1  12-13 Error Estimate  14-15 SSID  16-43 zero
//	0-3 Sequence Number  4-15 zero  16-23 T1  24-25 Error Estimate  26-27 SSID
//	28-95 zero  96-111 HMAC
//
// Reply, unauthenticated (44 octets) and authenticated (112):
//
//	0-3 Sequence Number  4-11 T3  12-13 Error Estimate  14-15 SSID  16-23 T2
//	24-27 Sender Sequence Number  28-35 Sender T1  36-37 Sender Error Estimate
//	38-39 zero  40 Sender TTL  41-43 zero
//	0-3 Sequence Number  4-15 zero  16-23 T3  24-25 Error Estimate  26-27 SSID
//	28-31 zero  32-39 T2  40-47 zero  48-51 Sender Sequence Number  52-63 zero
//	64-71 Sender T1  72-73 Sender Error Estimate  74-79 zero  80 Sender TTL
//	81-95 zero  96-111 HMAC
//
// TLVs follow the base packet: Flags (1) Type (1) Length (2) Value. The HMAC of a base packet is HMAC-SHA-256 over
// octets 0..95, truncated to 16; that of the HMAC TLV, which is last, is over the Sequence Number and the TLVs before
// it.
//
// Type 251, of the experimental range (a private-use type would have to start with an enterprise number, RFC 8972
// section 4), is the Receipt, an extension of oneway:
//
//	0-1  "OW"  2 version 1 (0xf0), host block (0x08), bitmap words (0x07)
//	3    0x80 Query  0x40 Finish  0x20 Filled  0x18 origin of T2  0x07 clock
//	4-7  CRC-32C of the whole payload (this field and both HMACs taken as zero)
//	8-11 Run   12-15 Epoch
//	16   Next, Base, Received, Lost, Duplicated, Reordered, Late, Corrupted, Bursts
//	52   Tx   56-67 transmit times of the last three replies   68-71 their TX uncertainty (EarlierTX), lowest bit TellsTX
//	72   bitmap, words x 8
//	     host block, if there is one: socket drops (4), Traffic Class (1), and modulo 4096
//	     remarked packets (12 bits) and packets with CE (12 bits)
//
// In a request, Next is the number of test packets sent so far, Base a token of the sender's kernel, Received the
// sender's capabilities as bits (0x1: host blocks) and the DSCP that it sets (0x3f00), and Tx the sender's waiting time in milliseconds; the other counts
// are zero, and there is no host block. A reflector that predates the host block ignores Received; a sender that
// predates it does not request the block, and gets none. The reflector writes the counts of its receive window (package
// seqwin), the number of its replies, and their transmit timestamps. A statistics query (Query) is not a test packet:
// it gets a reply, and no end counts it. With Finish it reports that Next packets have been sent and waited for.
package stampfmt

import (
	"encoding/binary"
	"errors"
	"fmt"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/net/wire/timefmt"
)

const (
	// Port is the reflector's UDP port (RFC 8762 section 4.1).
	Port = hostport.Reflector
	// UnauthenticatedBytes is the length of an unauthenticated base packet, request and reply alike, in octets of UDP
	// payload (RFC 8762 sections 4.2.1 and 4.3.1).
	UnauthenticatedBytes = 44
	// AuthenticatedBytes is that of an authenticated one (RFC 8762 sections 4.2.2
	// and 4.3.2).
	AuthenticatedBytes = 112
	// MinReplyBytes is the shortest unauthenticated reply: the last field of TWAMP-Test's is the Sender TTL in octet 40 (RFC 5357
	// section 4.2.1).
	MinReplyBytes = 41
	// MinSenderBytes is the shortest request that is as long as its reply: that of TWAMP-Test with 27 octets of padding (RFC 5357
	// section 4.1.2, RFC 8762 section 4.6).
	MinSenderBytes = MinReplyBytes
	// UnpaddedSenderBytes is a request of TWAMP-Test without padding: Sequence Number, T1 and Error Estimate (RFC 5357 section
	// 4.1.2).
	UnpaddedSenderBytes = 14
	// TLVHeaderBytes is what precedes the value of each TLV (RFC 8972 section 4).
	TLVHeaderBytes = 4
)

var be = binary.BigEndian

var (
	// ErrShort means: a packet has fewer octets than its type requires.
	ErrShort = errors.New("stampfmt: short packet")
	// ErrHMAC means: a packet is damaged, forged, or of another key.
	ErrHMAC = errors.New("stampfmt: HMAC does not match")
)

// SenderPacket is a request. The zero value is packet 0, with an Error Estimate that is not valid.
type SenderPacket struct {
	// Seq counts the packets of a session from 0, modulo 2^32.
	Seq uint32
	// T1 is the send time, in wire format: that of Error's Z bit (package timefmt).
	T1 uint64
	// Error is the sender's Error Estimate.
	Error timefmt.ErrorEstimate
	// SSID identifies the session (RFC 8972 section 3); 0: none.
	SSID uint16
}

// ReflectorPacket is a reply.
type ReflectorPacket struct {
	// Seq is the reflector's own number, from 0 and modulo 2^32, or a copy of SenderSeq if it is stateless.
	Seq uint32
	// T3 is the send time of the reply, in the wire format of Error's Z bit.
	T3 uint64
	// Error is the reflector's Error Estimate, for T2 and T3.
	Error timefmt.ErrorEstimate
	// SSID is the request's, or 0 from a reflector without RFC 8972.
	SSID uint16
	// T2 is the receive time of the request, in the format of T3.
	T2 uint64
	// SenderSeq, SenderT1 and SenderError are copies of the request's.
	SenderSeq   uint32
	SenderT1    uint64
	SenderError timefmt.ErrorEstimate
	// SenderTTL is the TTL or Hop Limit of the received request.
	SenderTTL uint8
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

// ParseSender reads an unauthenticated request of MinSenderBytes or more: the missing octets of a TWAMP-Light one are
// zero. The error is ErrShort.
func ParseSender(b []byte) (SenderPacket, error) { return parseSender(b, MinSenderBytes, 4) }

// ParseUnpaddedSender reads a request of UnpaddedSenderBytes or more: what follows is padding, without SSID. The error is ErrShort.
func ParseUnpaddedSender(b []byte) (p SenderPacket, err error) {
	if len(b) < UnpaddedSenderBytes {
		return p, fmt.Errorf("%w: %d bytes, want %d", ErrShort, len(b), UnpaddedSenderBytes)
	}
	return SenderPacket{Seq: be.Uint32(b), T1: be.Uint64(b[4:]), Error: timefmt.ErrorEstimate(be.Uint16(b[12:]))}, nil
}

// ParseSenderUnverified reads an authenticated request without checking its
// HMAC. The error is ErrShort.
func ParseSenderUnverified(b []byte) (SenderPacket, error) {
	return parseSender(b, AuthenticatedBytes, 16)
}

// parseSender reads a request of at least this many octets whose T1, with the fields after it, is at offset t1.
func parseSender(b []byte, least, t1 int) (p SenderPacket, err error) {
	if len(b) < least {
		return p, fmt.Errorf("%w: %d bytes, want %d", ErrShort, len(b), least)
	}
	return SenderPacket{
		Seq: be.Uint32(b), T1: be.Uint64(b[t1:]), Error: timefmt.ErrorEstimate(be.Uint16(b[t1+8:])), SSID: be.Uint16(b[t1+10:]),
	}, nil
}

// AppendTo appends the unauthenticated reply.
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

// AppendAuthenticatedTo appends the authenticated reply, HMAC included.
func (p ReflectorPacket) AppendAuthenticatedTo(b []byte, k *Key) []byte {
	at := len(b)
	b = p.AppendUnsignedTo(b)
	PutHMAC(b[at:], k)
	return b
}

// AppendUnsignedTo appends the packet of authenticated mode with zeros for its HMAC: see PutHMAC, which must follow T3.
func (p ReflectorPacket) AppendUnsignedTo(b []byte) []byte {
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
	return append(b, zeros[:31]...)
}

// ParseReflector reads an unauthenticated reply of MinReplyBytes or more. The error is ErrShort.
func ParseReflector(b []byte) (p ReflectorPacket, err error) {
	if len(b) < MinReplyBytes {
		return p, fmt.Errorf("%w: %d bytes, want %d", ErrShort, len(b), MinReplyBytes)
	}
	return ReflectorPacket{
		Seq: be.Uint32(b), T3: be.Uint64(b[4:]), Error: timefmt.ErrorEstimate(be.Uint16(b[12:])), SSID: be.Uint16(b[14:]),
		T2: be.Uint64(b[16:]), SenderSeq: be.Uint32(b[24:]), SenderT1: be.Uint64(b[28:]),
		SenderError: timefmt.ErrorEstimate(be.Uint16(b[36:])), SenderTTL: b[40],
	}, nil
}

// ParseReflectorAuthenticated reads and verifies an authenticated reply. The error is ErrShort or, with the packet's
// fields, ErrHMAC.
func ParseReflectorAuthenticated(b []byte, k *Key) (p ReflectorPacket, err error) {
	if len(b) < AuthenticatedBytes {
		return p, fmt.Errorf("%w: %d bytes, want %d", ErrShort, len(b), AuthenticatedBytes)
	}
	p = parseReflectorAuthenticated(b)
	if !k.VerifyBase(b) {
		return p, ErrHMAC
	}
	return p, nil
}

// parseReflectorAuthenticated reads a reply of AuthenticatedBytes or more without checking its HMAC.
func parseReflectorAuthenticated(b []byte) ReflectorPacket {
	return ReflectorPacket{
		Seq: be.Uint32(b), T3: be.Uint64(b[16:]), Error: timefmt.ErrorEstimate(be.Uint16(b[24:])), SSID: be.Uint16(b[26:]),
		T2: be.Uint64(b[32:]), SenderSeq: be.Uint32(b[48:]), SenderT1: be.Uint64(b[64:]),
		SenderError: timefmt.ErrorEstimate(be.Uint16(b[72:])), SenderTTL: b[80],
	}
}

// ParseEcho reads the copies of the request's number and T1 in a reply, also in one that ends after them; false: b is shorter.
func ParseEcho(b []byte, authenticated bool) (seq uint32, t1 uint64, ok bool) {
	number, time := 24, 28
	if authenticated {
		number, time = 48, 64
	}
	if len(b) < time+8 {
		return 0, 0, false
	}
	return be.Uint32(b[number:]), be.Uint64(b[time:]), true
}

// PutT3 overwrites the transmit timestamp of a base packet in place: T1 of a request, T3 of a reply. An HMAC over it
// must be written again.
func PutT3(b []byte, authenticated bool, t3 uint64) {
	if authenticated {
		be.PutUint64(b[16:], t3)
		return
	}
	be.PutUint64(b[4:], t3)
}

var zeros [AuthenticatedBytes]byte
