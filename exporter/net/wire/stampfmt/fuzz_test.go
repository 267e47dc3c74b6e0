package stampfmt

import (
	"bytes"
	"math"
	"testing"
)

func addSeeds(f *testing.F) {
	for _, s := range []string{
		"", senderOpen, senderSealed, replyOpen, replySealed, vectorReceiptWire, hostReceiptWire,
		"80 07 0010 01020304 1112131415161718 02 000000", "80 04 0004 b945 0000", "00 01 ffff",
	} {
		f.Add(octets(f, s))
	}
	for _, b := range sealedPackets(f) {
		f.Add(b)
	}
}

// FuzzBasePackets checks that a parsed packet is unchanged after writing and parsing.
func FuzzBasePackets(f *testing.F) {
	addSeeds(f)
	k := vectorKey()
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ParseSender(b); err == nil {
			w := p.AppendTo(nil)
			if again, err := ParseSender(w); err != nil || again != p || !bytes.Equal(w[:16], b[:16]) {
				t.Errorf("request %+v became %+v, %v", p, again, err)
			}
		}
		if p, err := ParseReflector(b); err == nil {
			w := p.AppendTo(nil)
			if again, err := ParseReflector(w); err != nil || again != p || !bytes.Equal(w[:38], b[:38]) {
				t.Errorf("reply %+v became %+v, %v", p, again, err)
			}
		}
		if p, err := ParseSenderUnverified(b); err == nil {
			if again, err := verifiedSender(p.AppendAuthenticatedTo(nil, k), k); err != nil || again != p {
				t.Errorf("authenticated request %+v became %+v, %v", p, again, err)
			}
		}
		p, _ := ParseReflectorAuthenticated(b, k)
		if again, err := ParseReflectorAuthenticated(p.AppendAuthenticatedTo(nil, k), k); err != nil || again != p {
			t.Errorf("authenticated reply %+v became %+v, %v", p, again, err)
		}
	})
}

func FuzzNextTLV(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		for rest := b; len(rest) > 0; {
			v, after, err := NextTLV(rest)
			if err != nil {
				again = append(again, rest...)
				break
			}
			if len(after) > len(rest)-TLVHeaderBytes {
				t.Fatalf("no progress at %x", rest)
			}
			again = v.AppendTo(again)
			checkValue(t, v)
			rest = after
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

// checkValue parses v as every type, writes it, and parses it again.
func checkValue(t *testing.T, v TLV) {
	t.Helper()
	same := func(wire []byte, ignored ...int) {
		t.Helper()
		want := append([]byte{}, v.Value...)
		for _, i := range ignored {
			want[i] = 0
		}
		// Sub-TLVs after a Timestamp Information are discarded.
		if got := wire[TLVHeaderBytes:]; !bytes.HasPrefix(want, got) {
			t.Errorf("value %x became %x", v.Value, got)
		}
	}
	if x, err := ParseClassOfService(v.Value); err == nil {
		same(x.AppendTo(nil), 2, 3)
	}
	if x, err := ParseDirectMeasurement(v.Value); err == nil {
		same(x.AppendTo(nil))
	}
	if x, err := ParseFollowUp(v.Value); err == nil {
		same(x.AppendTo(nil), 13, 14, 15)
	}
	if x, err := ParseReceipt(v.Value); err == nil {
		// Not the same octets: a TX uncertainty has several encodings.
		b := x.AppendTo(nil)
		if again, err := ParseReceipt(b[TLVHeaderBytes:]); err != nil || again != x || len(b) != TLVHeaderBytes+len(v.Value) {
			t.Errorf("Receipt %x became %+v", v.Value, again)
		}
	}
	CheckPadding(v.Value, 1)
}

func FuzzCRC(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, authenticated := range []bool{false, true} {
			sealed := append([]byte{}, b...)
			SealCRC(sealed, authenticated)
			s, ok := findSeal(b, authenticated)
			if CheckCRC(sealed, authenticated) != ok || !ok && !bytes.Equal(sealed, b) {
				t.Fatalf("authenticated %v: found %v in %x", authenticated, ok, b)
			}
			if !ok {
				continue
			}
			copy(sealed[s.crc:s.crc+crcBytes], b[s.crc:])
			if !bytes.Equal(sealed, b) {
				t.Errorf("authenticated %v: more than the CRC changed in %x", authenticated, b)
			}
		}
	})
}

func FuzzVerifyTLVs(f *testing.F) {
	for _, b := range sealedPackets(f) {
		f.Add(b, 44, 100)
	}
	f.Add([]byte{}, -1, -1)
	f.Add(make([]byte, 64), 44, math.MaxInt)
	k := vectorKey()
	f.Fuzz(func(t *testing.T, b []byte, base, at int) {
		k.VerifyBase(b)
		if k.VerifyTLVs(b, base, at) {
			t.Errorf("verified a forged packet: %x, base %d, at %d", b, base, at)
		}
		if len(b) < UnauthenticatedBytes {
			return
		}
		signed := PutTLVHMAC(AppendTLVHMAC(append([]byte{}, b...)), UnauthenticatedBytes, k)
		if !k.VerifyTLVs(signed, UnauthenticatedBytes, len(b)) {
			t.Errorf("%x does not verify", signed)
		}
	})
}

func FuzzPadding(f *testing.F) {
	f.Add([]byte("before"), 1400, uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, n int, seq uint32) {
		n %= 1 << 17
		v, rest, err := NextTLV(AppendPadding(b, n, seq)[len(b):])
		if err != nil || len(rest) != 0 || len(v.Value) != min(max(n, 0), maxValueBytes) || !CheckPadding(v.Value, seq) {
			t.Errorf("padding of %d octets of packet %d: %d, %v", n, seq, len(v.Value), err)
		}
	})
}
