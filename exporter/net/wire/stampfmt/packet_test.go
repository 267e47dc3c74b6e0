package stampfmt

import (
	"errors"
	"testing"
)

func TestPacketsBelowTheMinimumLengthAreRefused(t *testing.T) {
	k := vectorKey()
	for _, c := range []struct {
		name  string
		least int
		parse func([]byte) error
	}{
		{"request", 41, func(b []byte) error { _, err := ParseSender(b); return err }},
		{"reply", 41, func(b []byte) error { _, err := ParseReflector(b); return err }},
		{"unverified request", 112, func(b []byte) error { _, err := ParseSenderUnverified(b); return err }},
		{"authenticated reply", 112, func(b []byte) error { _, err := ParseReflectorAuthenticated(b, k); return err }},
	} {
		for n := range c.least + 1 {
			if err := c.parse(make([]byte, n)); errors.Is(err, ErrShort) != (n < c.least) {
				t.Errorf("%s of %d octets: got %v", c.name, n, err)
			}
		}
	}
}

func TestRepliesOfTWAMPLightEndWithTheTTL(t *testing.T) {
	got, err := ParseReflector(octets(t, replyOpen)[:41])
	if err != nil || got != vectorReply {
		t.Errorf("got %+v, %v", got, err)
	}
}

// verifiedSender parses and verifies, as a reflector does.
func verifiedSender(b []byte, k *Key) (SenderPacket, error) {
	p, err := ParseSenderUnverified(b)
	if err == nil && !k.VerifyBase(b) {
		err = ErrHMAC
	}
	return p, err
}

func TestAnyChangedBitBreaksTheBaseHMAC(t *testing.T) {
	k, other := vectorKey(), NewKey([]byte("another"))
	for name, wire := range map[string]string{"request": senderSealed, "reply": replySealed} {
		b := octets(t, wire)
		if !k.Clone().VerifyBase(b) || other.VerifyBase(b) {
			t.Fatalf("%s: the valid key fails, or another one does not", name)
		}
		for bit := range 8 * len(b) {
			b[bit/8] ^= 1 << (bit % 8)
			_, err := verifiedSender(b, k)
			_, err2 := ParseReflectorAuthenticated(b, k)
			if k.VerifyBase(b) || !errors.Is(err, ErrHMAC) || !errors.Is(err2, ErrHMAC) {
				t.Fatalf("%s: verified with bit %d flipped", name, bit)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
		if k.VerifyBase(b[:111]) {
			t.Errorf("%s: verified with an octet missing", name)
		}
	}
}

func TestKeyCopiesItsSecret(t *testing.T) {
	secret := []byte("secret")
	k := NewKey(secret)
	secret[0] = 'x'
	b := vectorSender.AppendAuthenticatedTo(nil, k.Clone())
	if !NewKey([]byte("secret")).VerifyBase(b) {
		t.Error("the key changed with the caller's slice")
	}
}

func TestAnyChangedBitBreaksTheTLVHMAC(t *testing.T) {
	k := vectorKey()
	for _, base := range []int{UnauthenticatedBytes, AuthenticatedBytes} {
		b := vectorSender.AppendTo(nil)
		if base == AuthenticatedBytes {
			b = vectorSender.AppendAuthenticatedTo(nil, k)
		}
		b = ClassOfService{DSCP1: 46}.AppendTo(FollowUp{}.AppendTo(b))
		at := len(b)
		b = PutTLVHMAC(AppendTLVHMAC(b), base, k)
		if !k.VerifyTLVs(b, base, at) {
			t.Fatalf("base %d: verification failed", base)
		}
		for bit := range 8 * len(b) {
			// The HMAC covers the Sequence Number and the TLVs, but not the HMAC TLV's own flags, which the reflector
			// changes.
			octet := bit / 8
			covered := octet < 4 || octet >= base && octet != at
			b[octet] ^= 1 << (bit % 8)
			if k.VerifyTLVs(b, base, at) == covered {
				t.Fatalf("base %d: bit %d of octet %d flipped: verification is wrong, covered %v", base, bit%8, octet, covered)
			}
			b[octet] ^= 1 << (bit % 8)
		}
	}
}

func TestOnlyAnHMACTLVVerifies(t *testing.T) {
	k := vectorKey()
	b := FollowUp{}.AppendTo(vectorSender.AppendTo(nil))
	whole := PutTLVHMAC(AppendTLVHMAC(b), UnauthenticatedBytes, k)
	for at := -30; at < len(whole)+30; at++ {
		if k.VerifyTLVs(whole, UnauthenticatedBytes, at) != (at == len(b)) {
			t.Errorf("verified an HMAC TLV at octet %d of %d", at, len(whole))
		}
	}
	for n := range len(whole) {
		if k.VerifyTLVs(whole[:n], UnauthenticatedBytes, len(b)) {
			t.Errorf("verified with %d of %d octets", n, len(whole))
		}
	}
	for _, base := range []int{-1, 0, 3, len(whole), len(whole) + 1} {
		if k.VerifyTLVs(whole, base, len(b)) {
			t.Errorf("verified with a base packet of %d octets", base)
		}
	}
}
