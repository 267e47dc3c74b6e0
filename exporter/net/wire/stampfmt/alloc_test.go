package stampfmt

import "testing"

// requestOf makes a request of size octets, as the oneway sender does.
func requestOf(b []byte, size int) []byte {
	b = wholeReceipt.AppendTo(FollowUp{}.AppendTo(vectorSender.AppendTo(b)))
	if rest := size - len(b) - TLVHeaderBytes; rest >= 0 {
		b = AppendPadding(b, rest, 7)
	}
	return b
}

func TestPacketsDoNotAllocate(t *testing.T) {
	k := vectorKey()
	b := make([]byte, 0, 2048)
	open := requestOf(make([]byte, 0, 2048), 1472)
	closed := PutTLVHMAC(AppendTLVHMAC(vectorReceipt.AppendTo(vectorReply.AppendAuthenticatedTo(nil, k))), AuthenticatedBytes, k)
	at := len(closed) - hmacTLVSize
	ok := true
	for name, f := range map[string]func(){
		"write a request":              func() { requestOf(b, 1472) },
		"write an authenticated one":   func() { vectorSender.AppendAuthenticatedTo(b, k) },
		"write a reply":                func() { vectorReply.AppendTo(b) },
		"write an authenticated reply": func() { vectorReply.AppendAuthenticatedTo(b, k) },
		"write each TLV": func() {
			b := DirectMeasurement{1, 2, 3}.AppendTo(TimestampInformation{1, 2, 3, 4}.AppendTo(b))
			b = ClassOfService{1, 2, 3, 1}.AppendTo(b)
			TLV{Type: 200, Value: open[:9]}.AppendTo(b)
		},
		"write an HMAC TLV": func() { PutTLVHMAC(AppendTLVHMAC(append(b, open...)), UnauthenticatedBytes, k) },
		"read a request":    func() { _, err := ParseSender(open); ok = ok && err == nil },
		"read a reply":      func() { _, err := ParseReflector(open); ok = ok && err == nil },
		"read an authenticated reply": func() {
			_, err := ParseReflectorAuthenticated(closed, k)
			ok = ok && err == nil
		},
		"walk the TLVs":   func() { ok = ok && walk(open[UnauthenticatedBytes:]) == 3 },
		"verify the TLVs": func() { ok = ok && k.VerifyTLVs(closed, AuthenticatedBytes, at) },
		"write the HMACs": func() { PutHMAC(closed, k); PutTLVHMAC(closed, AuthenticatedBytes, k) },
		"seal and check":  func() { SealCRC(open, false); ok = ok && CheckCRC(open, false) },
		"stamp":           func() { PutT3(open, false, 7) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
	if !ok {
		t.Error("a measured function failed")
	}
}

// walk reads all TLVs as the oneway sender does, and returns how many were good.
func walk(rest []byte) (good int) {
	for len(rest) > 0 {
		var t TLV
		var err error
		if t, rest, err = NextTLV(rest); err != nil {
			return good
		}
		switch t.Type {
		case TypeFollowUp:
			_, err = ParseFollowUp(t.Value)
		case TypeReceipt:
			_, err = ParseReceipt(t.Value)
		case TypeExtraPadding:
			if !CheckPadding(t.Value, 7) {
				continue
			}
		default:
		}
		if err == nil {
			good++
		}
	}
	return good
}

func BenchmarkWrite(b *testing.B) {
	k := vectorKey()
	buf := make([]byte, 0, 2048)
	for name, f := range map[string]func(){
		"request":               func() { vectorSender.AppendTo(buf) },
		"request/authenticated": func() { vectorSender.AppendAuthenticatedTo(buf, k) },
		"reply":                 func() { vectorReply.AppendTo(buf) },
		"reply/authenticated":   func() { vectorReply.AppendAuthenticatedTo(buf, k) },
		"receipt":               func() { vectorReceipt.AppendTo(buf) },
		"padding/1400":          func() { AppendPadding(buf, 1400, 7) },
		"whole/172":             func() { requestOf(buf, 172) },
		"whole/1472":            func() { requestOf(buf, 1472) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	k := vectorKey()
	open, closed := vectorReply.AppendTo(nil), vectorReply.AppendAuthenticatedTo(nil, k)
	small, large := requestOf(nil, 172), requestOf(nil, 1472)
	receipt, padding := vectorReceipt.AppendTo(nil)[TLVHeaderBytes:], AppendPadding(nil, 1400, 7)[TLVHeaderBytes:]
	for name, f := range map[string]func() bool{
		"reply":               func() bool { _, err := ParseReflector(open); return err == nil },
		"reply/authenticated": func() bool { _, err := ParseReflectorAuthenticated(closed, k); return err == nil },
		"receipt":             func() bool { _, err := ParseReceipt(receipt); return err == nil },
		"padding/1400":        func() bool { return CheckPadding(padding, 7) },
		"tlvs/172":            func() bool { return walk(small[UnauthenticatedBytes:]) == 3 },
		"tlvs/1472":           func() bool { return walk(large[UnauthenticatedBytes:]) == 3 },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !f() {
					b.Fatal("read failed")
				}
			}
		})
	}
}

func BenchmarkProtect(b *testing.B) {
	k := vectorKey()
	small, large := requestOf(nil, 172), requestOf(nil, 1472)
	for name, packet := range map[string][]byte{"172": small, "1472": large} {
		SealCRC(packet, false)
		signed := PutTLVHMAC(AppendTLVHMAC(append([]byte{}, packet...)), UnauthenticatedBytes, k)
		for what, f := range map[string]func() bool{
			"crc/seal":    func() bool { SealCRC(packet, false); return true },
			"crc/check":   func() bool { return CheckCRC(packet, false) },
			"hmac/put":    func() bool { PutTLVHMAC(signed, UnauthenticatedBytes, k); return true },
			"hmac/verify": func() bool { return k.VerifyTLVs(signed, UnauthenticatedBytes, len(packet)) },
		} {
			b.Run(what+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(packet)))
				for b.Loop() {
					if !f() {
						b.Fatal("verification failed")
					}
				}
			})
		}
	}
}
