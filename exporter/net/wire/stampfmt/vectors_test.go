package stampfmt

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/timefmt"
)

// The octets of this file are derived by hand from the figures of RFC 8762 (sections 4.2 and 4.3) and RFC 8972
// (sections 3 and 4), field by field; the HMACs are the output of `openssl dgst -sha256 -mac HMAC -macopt
// hexkey:00010203...1f`, and the CRCs of a bitwise CRC-32C in another language.

// octets turns hex, spaces allowed, into bytes.
func octets(t testing.TB, parts ...string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Join(parts, ""), " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// zero is n octets of MBZ.
func zero(n int) string { return strings.Repeat("00", n) }

func vectorKey() *Key {
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(i)
	}
	return NewKey(secret)
}

var (
	vectorSender = SenderPacket{Seq: 0x01020304, T1: 0xe8fe6f80_80000000, Error: 0x89a8, SSID: 0x0a0b}
	vectorReply  = ReflectorPacket{
		Seq: 0x11121314, T3: 0x21222324_25262728, Error: 0xcf84, SSID: 0x0a0b, T2: 0x31323334_35363738,
		SenderSeq: 0x01020304, SenderT1: 0xe8fe6f80_80000000, SenderError: 0x89a8, SenderTTL: 0xfe,
	}
	senderOpen   = "01020304 e8fe6f8080000000 89a8 0a0b" + zero(28)
	senderSealed = "01020304" + zero(12) + "e8fe6f8080000000 89a8 0a0b" + zero(68) + "1d0844215665928db92966b167975c2c"
	replyOpen    = "11121314 2122232425262728 cf84 0a0b 3132333435363738 01020304 e8fe6f8080000000 89a8 0000 fe" + zero(3)
	replySealed  = "11121314" + zero(12) + "2122232425262728 cf84 0a0b" + zero(4) + "3132333435363738" + zero(8) +
		"01020304" + zero(12) + "e8fe6f8080000000 89a8" + zero(6) + "fe" + zero(15) + "b6e999023b63206e7f9b165ecb9b9f36"
)

func TestBasePacketsMatchTheFiguresOfRFC8762(t *testing.T) {
	k := vectorKey()
	for _, c := range []struct {
		name, wire string
		size       int
		put        func(b []byte) []byte
		parse      func(b []byte) (any, error)
		want       any
	}{
		{
			"request", senderOpen, 44, vectorSender.AppendTo,
			func(b []byte) (any, error) { return ParseSender(b) }, vectorSender,
		},
		{
			"authenticated request", senderSealed, 112,
			func(b []byte) []byte { return vectorSender.AppendAuthenticatedTo(b, k) },
			func(b []byte) (any, error) { return verifiedSender(b, k) }, vectorSender,
		},
		{
			"reply", replyOpen, 44, vectorReply.AppendTo,
			func(b []byte) (any, error) { return ParseReflector(b) }, vectorReply,
		},
		{
			"authenticated reply", replySealed, 112,
			func(b []byte) []byte { return vectorReply.AppendAuthenticatedTo(b, k) },
			func(b []byte) (any, error) { return ParseReflectorAuthenticated(b, k) }, vectorReply,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := octets(t, c.wire)
			if len(want) != c.size {
				t.Fatalf("the vector has %d octets, want %d", len(want), c.size)
			}
			if diff := cmp.Diff(want, c.put(nil)); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			// Preceding octets stay unchanged, and used memory is overwritten.
			dirty := append([]byte("before"), make([]byte, 200)...)
			for i := range dirty[6:] {
				dirty[6+i] = 0xff
			}
			if got := c.put(dirty[:6]); string(got[:6]) != "before" || !cmp.Equal(got[6:], want) {
				t.Errorf("appended to used memory: %x", got)
			}
			got, err := c.parse(want)
			if err != nil || got != c.want {
				t.Errorf("read %+v, %v, want %+v", got, err, c.want)
			}
			// Octets after the base packet are ignored.
			if got, err := c.parse(append(want, 1, 2, 3)); err != nil || got != c.want {
				t.Errorf("read with octets after it: %+v, %v", got, err)
			}
		})
	}
}

// In authenticated mode the HMAC covers them.
func TestReservedOctetsAreIgnored(t *testing.T) {
	q := octets(t, senderOpen)
	for i := 16; i < 44; i++ {
		q[i] = 0xff
	}
	if got, err := ParseSender(q); err != nil || got != vectorSender {
		t.Errorf("got %+v, %v", got, err)
	}
	a := octets(t, replyOpen)
	for _, i := range []int{38, 39, 41, 42, 43} {
		a[i] = 0xff
	}
	if got, err := ParseReflector(a); err != nil || got != vectorReply {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTLVsMatchTheFiguresOfRFC8972(t *testing.T) {
	for _, c := range []struct {
		name, wire string
		value      interface{ AppendTo([]byte) []byte }
		parse      func(v []byte) (any, error)
	}{
		{
			"Timestamp Information", "80 03 0004 01 02 04 01",
			TimestampInformation{1, 2, 4, 1},
			func(v []byte) (any, error) { return TimestampInformation{v[0], v[1], v[2], v[3]}, nil },
		},
		// DSCP1 46 is 101110, DSCP2 20 is 010100, ECN 1 is 01, RP 1 is 01:
		// 10111001 01000101.
		{
			"Class of Service", "80 04 0004 b945 0000",
			ClassOfService{46, 20, 1, 1},
			func(v []byte) (any, error) { return ParseClassOfService(v) },
		},
		{
			"Direct Measurement", "80 05 000c 01020304 11121314 21222324",
			DirectMeasurement{0x01020304, 0x11121314, 0x21222324},
			func(v []byte) (any, error) { return ParseDirectMeasurement(v) },
		},
		{
			"Follow-Up Telemetry", "80 07 0010 01020304 1112131415161718 02 000000",
			FollowUp{0x01020304, 0x1112131415161718, 2},
			func(v []byte) (any, error) { return ParseFollowUp(v) },
		},
		{"unknown", "20 c8 0003 010203", TLV{FlagIntegrity, 200, []byte{1, 2, 3}}, nil},
		{"empty", "40 01 0000", TLV{FlagMalformed, TypeExtraPadding, []byte{}}, nil},
		{"Receipt", vectorReceiptWire, vectorReceipt, func(v []byte) (any, error) { return ParseReceipt(v) }},
		{"Receipt with a host block", hostReceiptWire, hostReceipt, func(v []byte) (any, error) { return ParseReceipt(v) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := octets(t, c.wire)
			if diff := cmp.Diff(want, c.value.AppendTo(nil)); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			got, rest, err := NextTLV(append(want, 0xee))
			if err != nil || !cmp.Equal(rest, []byte{0xee}) || !cmp.Equal(got.AppendTo(nil), want) {
				t.Fatalf("read %+v, rest %x, %v", got, rest, err)
			}
			if c.parse == nil {
				return
			}
			if value, err := c.parse(got.Value); err != nil || !cmp.Equal(value, any(c.value)) {
				t.Errorf("read %+v, %v, want %+v", value, err, c.value)
			}
		})
	}
}

// vectorReceipt has a different number in every field, so that no two are interchangeable.
var (
	vectorReceipt = Receipt{
		Words: 2, StatsQuery: true, Filled: true, T2Origin: sample.Kernel, Clock: ClockStepped,
		Run: 0x01010101, Epoch: 0x02020202, Next: 0x03030303, Base: 0x04040404, Received: 0x05050505,
		Lost: 0x06060606, Duplicated: 0x07070707, Reordered: 0x08080808, Late: 0x09090909,
		Corrupted: 0x0a0a0a0a, Bursts: 0x0b0b0b0b, Tx: 0x0c0c0c0c,
		// 31 us fit ten bits as they are, 33 us as 17 x 2, 1 s as 31 x 2^15 (1.015808 s).
		EarlierTX: [3]ReplyTX{
			{Known: true, After: 0x0d0d0d0c, TXUncertainty: 31 * time.Microsecond},
			{Known: true, After: 0, TXUncertainty: 34 * time.Microsecond},
			{Known: true, After: MaxReplyTXAfter, TXUncertainty: 1015808 * time.Microsecond},
		},
		Recent: [4]uint64{0x0f0f0f0f0f0f0f0f, 0x1010101010101010},
	}
	// Query 0x80, Filled 0x20, Kernel 2<<3, ClockStepped 2: 0xb2. 72 + 2 x 8 octets.
	vectorReceiptWire = "80 fb 0058 4f57 12 b2 00000000 01010101 02020202 03030303 04040404 05050505 06060606 07070707" +
		"08080808 09090909 0a0a0a0a 0b0b0b0b 0c0c0c0c 0d0d0d0d 00000001 ffffffff 07c317fc 0f0f0f0f0f0f0f0f 1010101010101010"
)

// hostReceipt has one word and a host block: as long as one of two words.
var hostReceipt = Receipt{Words: 1, Filled: true, Next: 3, Host: true, SocketDrops: 0x11121314, TrafficClass: 0xb8, Remarked: 0xabc, CE: 0xdef, Recent: [4]uint64{0x0123456789abcdef}}

const hostReceiptWire = "80 fb 0058 4f57 19 20 00000000 00000000 00000000 00000003 00000000 00000000 00000000 00000000 00000000" +
	"00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 0123456789abcdef 11121314 b8abcdef"

// A whole request of oneway: base, Follow-Up, Receipt, with each kind of protection.
const (
	wholeFollowUp = "80 07 0010 00000000 0000000000000000 00 000000"
	wholeHead     = "80 fb 0050 4f57 11 c0"
	wholeBody     = "a1a2a3a4 b1b2b3b4 000003e8 0000000000000000000000000000000000000000000000000000000000000000" +
		"00000bb8 0000000000000000 0000000000000000 0123456789abcdef"
)

var wholeReceipt = Receipt{
	Words: 1, StatsQuery: true, Finish: true, Run: 0xa1a2a3a4, Epoch: 0xb1b2b3b4, Next: 1000, Tx: 3000,
	Recent: [4]uint64{0x0123456789abcdef},
}

func TestHMACAndCRCOfRequestsMatchOtherTools(t *testing.T) {
	k := vectorKey()
	t.Run("open", func(t *testing.T) {
		b := wholeReceipt.AppendTo(FollowUp{}.AppendTo(vectorSender.AppendTo(nil)))
		SealCRC(b, false)
		compareOctets(t, b, octets(t, senderOpen, wholeFollowUp, wholeHead, "095c1627", wholeBody))
	})
	t.Run("open with an HMAC TLV before padding", func(t *testing.T) {
		b := wholeReceipt.AppendTo(FollowUp{}.AppendTo(vectorSender.AppendTo(nil)))
		at := len(b)
		b = PutTLVHMAC(AppendTLVHMAC(b), UnauthenticatedBytes, k)
		signed := len(b)
		b = TLV{senderFlags, TypeExtraPadding, []byte{1, 2, 3}}.AppendTo(b)
		SealCRC(b, false)
		PutTLVHMAC(b[:signed], UnauthenticatedBytes, k)
		compareOctets(t, b, octets(t, senderOpen, wholeFollowUp, wholeHead, "c19dee3f", wholeBody,
			"80 08 0010 051c37fbecf53994d8784d96d50af33d", "80 01 0003 010203"))
		if !CheckCRC(b, false) || !k.VerifyTLVs(b, UnauthenticatedBytes, at) {
			t.Error("verification failed")
		}
	})
	t.Run("authenticated", func(t *testing.T) {
		b := wholeReceipt.AppendTo(FollowUp{}.AppendTo(vectorSender.AppendAuthenticatedTo(nil, k)))
		at := len(b)
		b = PutTLVHMAC(AppendTLVHMAC(b), AuthenticatedBytes, k)
		SealCRC(b, true)
		PutTLVHMAC(b, AuthenticatedBytes, k)
		compareOctets(t, b, octets(t, senderSealed, wholeFollowUp, wholeHead, "58c1628f", wholeBody,
			"80 08 0010 49bf49014d12f644b61bd532dc44ea34"))
		if !CheckCRC(b, true) || !k.VerifyBase(b) || !k.VerifyTLVs(b, AuthenticatedBytes, at) {
			t.Error("verification failed")
		}
	})
}

func compareOctets(t *testing.T, got, want []byte) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPutT3WritesTheTransmitTimestamp(t *testing.T) {
	const stamp = 0x4142434445464748
	q, a := vectorSender, vectorReply
	q.T1, a.T3 = stamp, stamp
	for _, c := range []struct {
		name          string
		from, want    []byte
		authenticated bool
	}{
		{"request", vectorSender.AppendTo(nil), q.AppendTo(nil), false},
		{"reply", vectorReply.AppendTo(nil), a.AppendTo(nil), false},
		{"authenticated request", octets(t, senderSealed), q.AppendAuthenticatedTo(nil, vectorKey()), true},
		{"authenticated reply", octets(t, replySealed), a.AppendAuthenticatedTo(nil, vectorKey()), true},
	} {
		PutT3(c.from, c.authenticated, stamp)
		if c.authenticated {
			PutHMAC(c.from, vectorKey())
		}
		if !cmp.Equal(c.from, c.want) {
			t.Errorf("%s: %x, want %x", c.name, c.from, c.want)
		}
	}
	if timefmt.ErrorEstimate(0x89a8).Format() != timefmt.NTP || timefmt.ErrorEstimate(0xcf84).Format() != timefmt.PTP {
		t.Error("the vectors do not cover both formats")
	}
}
