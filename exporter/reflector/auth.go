package reflector

import (
	"time"

	"oneway.example/exporter/wire/stamp"
)

// verify checks the HMACs of b. Answered means that the base packet is
// believed; verified that the TLVs may be used too.
func (s *shard) verify(b []byte, q *question, known *session, src *source, now time.Duration) (verified bool, r Result) {
	t := &q.tlvs
	if !q.authenticated {
		// The TLVs may have an HMAC even if the base packet has none (RFC 8972
		// section 4.8).
		if t.hmac == 0 {
			return true, Answered
		}
		if t.misplaced || len(s.keys) == 0 {
			return false, Answered
		}
		r = s.tryKeys(q, nil, src, now, func(k *stamp.Key) bool { return k.VerifyTLVs(b, q.baseBytes, t.hmac) })
		return r == Answered, Answered
	}
	r = s.tryKeys(q, known, src, now, func(k *stamp.Key) bool { return k.VerifyBase(b) })
	if r != Answered {
		return false, r
	}
	switch {
	case t.hmac == 0:
		return !t.naked && t.malformed == 0, Answered
	case t.misplaced:
		return false, Answered
	}
	return s.keys[q.keyIndex].VerifyTLVs(b, q.baseBytes, t.hmac), Answered
}

// tryKeys looks for the key that check accepts: first the one that has verified
// the session before, and the others only while not too many packets of late
// were false. A spoofed flood therefore costs little and cannot keep a known
// session out.
func (s *shard) tryKeys(q *question, known *session, src *source, now time.Duration, check func(*stamp.Key) bool) Result {
	tried := -1
	if known != nil && known.key.auth == 1 && known.keyIndex < len(s.keys) {
		tried = known.keyIndex
		if check(s.keys[tried]) {
			q.keyIndex = tried
			return Answered
		}
	}
	if !src.failures.open(s.failures, now) || !s.failing.open(s.allFailures, now) {
		return HMACLimited
	}
	for i, k := range s.keys {
		if i != tried && check(k) {
			q.keyIndex = i
			return Answered
		}
	}
	src.failures.take(s.failures, now)
	s.failing.take(s.allFailures, now)
	return BadHMAC
}
