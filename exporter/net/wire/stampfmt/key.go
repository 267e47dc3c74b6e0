package stampfmt

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
)

const (
	hmacBytes   = 16
	hmacAt      = AuthenticatedBytes - hmacBytes
	hmacTLVSize = TLVHeaderBytes + hmacBytes
)

// Key is a shared secret prepared for HMAC-SHA-256 (RFC 2104, RFC 8762 section 4.4). It is for one goroutine, and does
// not allocate after its first use. The zero value is not usable.
type Key struct {
	secret []byte
	mac    hash.Hash
	number [4]byte // of VerifyTLVsOf
	sum    [sha256.Size]byte
}

// NewKey makes a key of a secret of any length, which it copies.
func NewKey(secret []byte) *Key {
	k := &Key{secret: append([]byte(nil), secret...)}
	k.mac = hmac.New(sha256.New, k.secret)
	return k
}

// Clone makes a key of the same secret for another goroutine.
func (k *Key) Clone() *Key { return NewKey(k.secret) }

// of returns the truncated HMAC of parts; it is valid until the next call.
func (k *Key) of(parts ...[]byte) []byte {
	k.mac.Reset()
	for _, p := range parts {
		k.mac.Write(p)
	}
	return k.mac.Sum(k.sum[:0])[:hmacBytes]
}

// PutHMAC writes the HMAC of an authenticated base packet over octets 0..95. b has at least AuthenticatedBytes; octets
// after those are neither read nor written.
func PutHMAC(b []byte, k *Key) { copy(b[hmacAt:AuthenticatedBytes], k.of(b[:hmacAt])) }

// VerifyBase checks the HMAC of an authenticated base packet, in constant time;
// false if b is too short for one.
func (k *Key) VerifyBase(b []byte) bool {
	return len(b) >= AuthenticatedBytes && hmac.Equal(b[hmacAt:AuthenticatedBytes], k.of(b[:hmacAt]))
}

// AppendTLVHMAC appends an HMAC TLV (RFC 8972 section 4.8), whose value PutTLVHMAC writes when the packet is complete.
func AppendTLVHMAC(b []byte) []byte {
	return append(appendHeader(b, senderFlags, TypeHMAC, hmacBytes), zeros[:hmacBytes]...)
}

// PutTLVHMAC writes the value of the HMAC TLV at the end of b, and returns b. The HMAC covers the Sequence Number and the TLVs
// before it, their flags included, but not its own header; base is the length of the base packet. After a change of the TLVs or
// the Sequence Number, it must be written again.
func PutTLVHMAC(b []byte, base int, k *Key) []byte {
	at := len(b) - hmacTLVSize
	copy(b[at+TLVHeaderBytes:], k.of(b[:4], b[base:at]))
	return b
}

// VerifyTLVs checks the HMAC TLV at offset at of b, in constant time; base is the length of the base packet. False if
// there is no HMAC TLV.
func (k *Key) VerifyTLVs(b []byte, base, at int) bool {
	return len(b) >= 4 && k.VerifyTLVsOf(be.Uint32(b), b, base, at)
}

// VerifyTLVsOf is VerifyTLVs for TLVs that were signed in a packet with another Sequence Number.
func (k *Key) VerifyTLVsOf(seq uint32, b []byte, base, at int) bool {
	if base < UnauthenticatedBytes || at < base || at > len(b)-hmacTLVSize ||
		TLVType(b[at+1]) != TypeHMAC || be.Uint16(b[at+2:]) != hmacBytes {
		return false
	}
	be.PutUint32(k.number[:], seq)
	return hmac.Equal(b[at+TLVHeaderBytes:at+hmacTLVSize], k.of(k.number[:], b[base:at]))
}
