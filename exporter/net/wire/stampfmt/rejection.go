package stampfmt

import "bytes"

// PutRejection overwrites a request of AuthenticatedBytes or more with a rejection, as long as the request: it tells the
// sender that its packets cannot be authenticated. It is an authenticated reply to p.SenderSeq and p.SenderT1 without an
// HMAC, which no sender accepts as a reply. T2 and T3 are whole seconds, of p.T3: enough for another reflector to recognize a
// reply, and no measurement. Octets after the base packet are the caller's.
func PutRejection(b []byte, p ReflectorPacket) {
	p.T3 &^= 1<<32 - 1
	p.T2, p.SenderTTL = p.T3, 0
	p.AppendUnsignedTo(b[:0])
}

// ParseRejection reads a rejection; false: b is none. It is not authentic: only the sender and observers of the request know
// SenderSeq and SenderT1.
func ParseRejection(b []byte) (p ReflectorPacket, ok bool) {
	if len(b) < AuthenticatedBytes || !InAuthenticatedFormat(b) || !bytes.Equal(b[hmacAt:AuthenticatedBytes], zeros[:hmacBytes]) {
		return p, false
	}
	p = parseReflectorAuthenticated(b)
	return p, p.T2 == p.T3 && uint32(p.T3) == 0
}

// RepliesWithoutKey reports whether b is the reply of a reflector without a key, which reads an authenticated request as one of
// the other format: T1, with the fields after it, is zero there.
func RepliesWithoutKey(b []byte) bool {
	return len(b) >= MinReplyBytes && !InAuthenticatedFormat(b) && bytes.Equal(b[28:40], zeros[:12])
}

// InAuthenticatedFormat distinguishes the formats of requests and of replies: octets 4 to 15 are zero in authenticated mode,
// and are a timestamp and an Error Estimate, neither of which may be zero, in the other.
func InAuthenticatedFormat(b []byte) bool {
	return len(b) >= AuthenticatedBytes && bytes.Equal(b[4:16], zeros[:12])
}
