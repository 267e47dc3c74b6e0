package reflector

import (
	"encoding/binary"

	"oneway.example/exporter/wire/stamp"
)

// minQuestionBytes is the shortest TWAMP-Light question: the unauthenticated
// sender packet is padded to the length of the answer, whose last field with a
// meaning is octet 40, the sender's TTL (RFC 5357 section 4.2.1).
const minQuestionBytes = 41

// maxTLVs bounds the work that one packet can ask for.
const maxTLVs = 64

// hmacTLVBytes is the whole HMAC TLV.
const hmacTLVBytes = stamp.TLVHeaderBytes + 16

// Offsets in the sender's packet, from RFC 8762 figures 2 and 4 and RFC 8972.
const (
	openZeros, openZerosEnd     = 16, 44
	sealedZeros, sealedZerosEnd = 28, 96
	sealedMark, sealedMarkEnd   = 4, 16
)

// question is what the octets of one packet say, before any of it is believed.
type question struct {
	base stamp.SenderPacket
	// authenticated: it has the format of authenticated mode.
	authenticated bool
	baseBytes     int // where the TLVs begin
	ssid          uint16
	tlvs          tlvs
	receipt       stamp.Receipt // if tlvs.receipt is set
	keyIndex      int           // the key that verified it
}

// tlvs are the offsets of the TLVs that decide how the others are treated; 0:
// there is none.
type tlvs struct {
	receipt, hmac, malformed int
	// end is where the well-formed ones end.
	end int
	// misplaced: something but padding follows the HMAC.
	misplaced bool
	// naked: there is something but padding, and so something to authenticate.
	naked bool
}

// looksAuthenticated tells the formats apart: octets 4 to 15 are zero in
// authenticated mode, and hold T1 and an Error Estimate, neither of which may be
// zero, in the other.
func looksAuthenticated(b []byte) bool {
	return len(b) >= stamp.AuthenticatedBytes && allZero(b[sealedMark:sealedMarkEnd])
}

func allZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.NativeEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// read fills in q from b, in the format that q.authenticated tells.
func (q *question) read(b []byte) error {
	var err error
	zeros, end := openZeros, openZerosEnd
	if q.authenticated {
		q.baseBytes, zeros, end = stamp.AuthenticatedBytes, sealedZeros, sealedZerosEnd
		q.base, err = stamp.ParseSenderUnverified(b)
	} else {
		q.baseBytes = stamp.UnauthenticatedBytes
		q.base, err = stamp.ParseSender(b)
	}
	if err != nil {
		return err
	}
	q.scan(b)
	q.ssid = q.base.SSID
	if q.tlvs.receipt == 0 && !allZero(b[zeros:min(end, len(b))]) {
		// A TWAMP-Light sender pads from octet 14 on: that is no SSID, and what
		// does not parse is no TLV.
		q.ssid = 0
		if q.tlvs.malformed != 0 {
			q.tlvs = tlvs{end: q.baseBytes}
		}
	}
	return nil
}

// scan finds the TLVs of q in b.
func (q *question) scan(b []byte) {
	t := &q.tlvs
	t.end = q.baseBytes
	for n := 0; t.end+stamp.TLVHeaderBytes <= len(b); n++ {
		at := t.end
		next := at + stamp.TLVHeaderBytes + int(binary.BigEndian.Uint16(b[at+2:]))
		kind := stamp.TLVType(b[at+1])
		switch {
		case binary.BigEndian.Uint32(b[at:]) == 0:
			return // zeros: the padding of a TWAMP-Light sender
		case next > len(b), n == maxTLVs, !validLength(kind, next-at-stamp.TLVHeaderBytes):
			t.malformed = at
			return
		}
		q.note(kind, at, b[at+stamp.TLVHeaderBytes:next])
		t.end = next
	}
}

func (q *question) note(kind stamp.TLVType, at int, value []byte) {
	t := &q.tlvs
	if kind != stamp.TypeExtraPadding {
		t.misplaced = t.misplaced || t.hmac != 0
		t.naked = true
	}
	switch {
	case kind == stamp.TypeHMAC && t.hmac == 0:
		t.hmac = at
	case kind == stamp.TypeReceipt && t.receipt == 0:
		if r, err := stamp.ParseReceipt(value); err == nil {
			q.receipt, t.receipt = r, at
		}
	}
}

// validLength knows the lengths that RFC 8972 fixes.
func validLength(kind stamp.TLVType, n int) bool {
	switch kind {
	case stamp.TypeTimestampInformation, stamp.TypeClassOfService:
		return n == 4
	case stamp.TypeDirectMeasurement:
		return n == 12
	case stamp.TypeFollowUp, stamp.TypeHMAC:
		return n == 16
	default:
		return true
	}
}
