package reflector

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/net/wire/stampfmt"
)

// maxTLVs limits the work for one packet.
const maxTLVs = 64

// hmacTLVBytes is the whole HMAC TLV.
const hmacTLVBytes = stampfmt.TLVHeaderBytes + 16

// request is the content of one packet, before any verification.
type request struct {
	base stampfmt.SenderPacket
	// authenticated: the packet has the format of authenticated mode.
	authenticated bool
	baseBytes     int // offset of the TLVs
	ssid          uint16
	tlvs          tlvs
	receipt       stampfmt.Receipt // if tlvs.receipt is set
	keyIndex      int              // the key that verified it
}

// tlvs are the offsets of the TLVs that affect the handling of the others; 0: absent.
type tlvs struct {
	receipt, hmac, malformed int
	// end is the offset after the last well-formed TLV.
	end int
	// misplaced: a TLV other than padding follows the HMAC.
	misplaced bool
	// unauthenticated: there is a TLV other than padding, which must be authenticated.
	unauthenticated bool
}

// allZero accepts at most as many bytes as a base packet has.
func allZero(b []byte) bool {
	var zeros [stampfmt.AuthenticatedBytes]byte
	return bytes.Equal(b, zeros[:len(b)])
}

// read parses b into q, in the format that q.authenticated selects.
func (q *request) read(b []byte) error {
	parse, zeros, end := stampfmt.ParseSender, 16, 44 // RFC 8762 figure 2 and RFC 8972
	q.baseBytes = stampfmt.UnauthenticatedBytes
	if q.authenticated {
		parse, zeros, end = stampfmt.ParseSenderUnverified, 28, 96 // RFC 8762 figure 4
		q.baseBytes = stampfmt.AuthenticatedBytes
	}
	if !q.authenticated && len(b) < stampfmt.MinSenderBytes {
		parse, zeros = stampfmt.ParseUnpaddedSender, len(b)
	}
	var err error
	if q.base, err = parse(b); err != nil {
		return err
	}
	q.scan(b)
	q.ssid = q.base.SSID
	if q.tlvs.receipt == 0 && !allZero(b[zeros:min(end, len(b))]) {
		// A TWAMP-Light sender pads from byte 14 on: there is no SSID, and bytes that do not parse are not a TLV.
		q.ssid = 0
		if q.tlvs.malformed != 0 {
			q.tlvs = tlvs{end: q.baseBytes}
		}
	}
	return nil
}

// scan finds the TLVs of q in b.
func (q *request) scan(b []byte) {
	t := &q.tlvs
	t.end = q.baseBytes
	for n := 0; t.end+stampfmt.TLVHeaderBytes <= len(b); n++ {
		at := t.end
		next := at + stampfmt.TLVHeaderBytes + int(binary.BigEndian.Uint16(b[at+2:]))
		kind := stampfmt.TLVType(b[at+1])
		switch {
		case binary.BigEndian.Uint32(b[at:]) == 0:
			return // zeros: the padding of a TWAMP-Light sender
		case next > len(b), n == maxTLVs, !validLength(kind, next-at-stampfmt.TLVHeaderBytes):
			t.malformed = at
			return
		}
		q.note(kind, at, b[at+stampfmt.TLVHeaderBytes:next])
		t.end = next
	}
}

func (q *request) note(kind stampfmt.TLVType, at int, value []byte) {
	t := &q.tlvs
	if kind != stampfmt.TypeExtraPadding {
		t.misplaced = t.misplaced || t.hmac != 0
		t.unauthenticated = true
	}
	switch {
	case kind == stampfmt.TypeHMAC && t.hmac == 0:
		t.hmac = at
	case kind == stampfmt.TypeReceipt && t.receipt == 0:
		if r, err := stampfmt.ParseReceipt(value); err == nil {
			q.receipt, t.receipt = r, at
		}
	}
}

// validLength checks the lengths that RFC 8972 fixes.
func validLength(kind stampfmt.TLVType, n int) bool {
	switch kind {
	case stampfmt.TypeTimestampInformation, stampfmt.TypeClassOfService:
		return n == 4
	case stampfmt.TypeDirectMeasurement:
		return n == 12
	case stampfmt.TypeFollowUp, stampfmt.TypeHMAC:
		return n == 16
	default:
		return true
	}
}

// replySeconds is the longest time between T2 and T3 of a packet that is recognized as a reply, in seconds.
const replySeconds = uint32(10 * time.Second / time.Second)

// looksLikeReply reports whether b is another reflector's reply. Both formats have whole seconds in the upper half of a
// timestamp (NTP and PTP alike), and T2 and T3 of a reply are of one clock, so the local clock is not needed. In a
// request T2's place has zeros or padding; random padding matches these ten seconds once in 400 million packets.
func looksLikeReply(b []byte) bool {
	if len(b) < stampfmt.MinReplyBytes {
		return false
	}
	t3, t2 := 4, 16 // RFC 8762 figure 5
	if stampfmt.InAuthenticatedFormat(b) {
		t3, t2 = 16, 32 // figure 6
	}
	in, out := binary.BigEndian.Uint32(b[t2:]), binary.BigEndian.Uint32(b[t3:])
	return in != 0 && out-in <= replySeconds
}

// addressResult refuses addresses that cannot or must not get a reply; Answered means that the addresses are
// acceptable.
func (s *shard) addressResult(peer netip.AddrPort, local netip.Addr) Result {
	a := peer.Addr()
	switch {
	case peer.Port() == 0, !a.IsValid(), a.IsUnspecified(), a.IsMulticast(), a == broadcast(),
		local.IsValid() && local.IsMulticast(), local == broadcast():
		return BadAddress
	case s.options.Allow != nil && !slices.ContainsFunc(s.options.Allow, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) }):
		return NotAllowed
	case slices.Contains(s.refusedPorts, peer.Port()):
		return Loop
	}
	return Answered
}

func broadcast() netip.Addr { return netip.AddrFrom4([4]byte{255, 255, 255, 255}) }
