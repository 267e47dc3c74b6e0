package stampfmt

import (
	"errors"
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
)

func TestReceiptsOfEverySizeAndFlagRoundTrip(t *testing.T) {
	for form := range 2 * (MaxReceiptWords + 1) {
		words, host := form/2, form%2
		for bits := range 1 << 8 {
			r := vectorReceipt
			if r.Host = host == 1; r.Host {
				r.SocketDrops = 0xfffffffe
			}
			r.Words, r.Recent = words, [4]uint64{}
			for i := range words {
				r.Recent[i] = 1<<63 | uint64(i)
			}
			r.StatsQuery, r.Finish, r.Filled = bits&0x80 != 0, bits&0x40 != 0, bits&0x20 != 0
			r.T2Origin, r.Clock = sample.Origin(bits>>3&3), ClockCode(bits&7)
			v, rest, err := NextTLV(r.AppendTo(nil))
			if err != nil || len(rest) != 0 || v.Value[3] != byte(bits) || len(v.Value) != 72+8*(words+host) {
				t.Fatalf("%d words, flags %#02x: %x, %v", words, bits, v.Value, err)
			}
			if got, err := ParseReceipt(v.Value); err != nil || got != r {
				t.Fatalf("%d words, flags %#02x: %+v, %v", words, bits, got, err)
			}
		}
	}
}

func TestTXUncertaintyIsRoundedUpByLittle(t *testing.T) {
	for _, d := range []time.Duration{
		0, 1, time.Microsecond, time.Microsecond + 1, 31 * time.Microsecond, 31*time.Microsecond + 1, 63 * time.Microsecond,
		63*time.Microsecond + 1, time.Millisecond, 12345678, time.Second, time.Hour, 18 * time.Hour,
	} {
		got, tells := parseReplyTX(appendReplyTX(nil, [ReportedReplies]ReplyTX{{}, {Known: true, TXUncertainty: d}, {}}, d > time.Second))
		if tells != (d > time.Second) {
			t.Errorf("with TX uncertainty %v, it tells: %v", d, tells)
		}
		if most := d + d/16 + time.Microsecond; !got[1].Known || got[1].TXUncertainty < d || got[1].TXUncertainty > most || got[0].Known || got[2].Known {
			t.Errorf("TX uncertainty %v became %+v", d, got)
		}
	}
	if got := txUncertaintyTime(txUncertaintyCode(math.MaxInt64)); got < 18*time.Hour {
		t.Errorf("the longest is written as %v", got)
	}
	for _, l := range []ReplyTX{{Known: true, After: -1}, {Known: true, After: MaxReplyTXAfter + 1}, {After: 5, TXUncertainty: 5}} {
		if got, _ := parseReplyTX(appendReplyTX(nil, [ReportedReplies]ReplyTX{l}, true)); got != [ReportedReplies]ReplyTX{} {
			t.Errorf("ReplyTX %+v became %+v, want unknown", l, got)
		}
	}
}

func TestReceiptClampsFieldsToTheirBits(t *testing.T) {
	for _, c := range []struct {
		words, want int
	}{{-1, 0}, {5, 4}, {math.MaxInt, 4}} {
		v, _, err := NextTLV(Receipt{Words: c.words}.AppendTo(nil))
		if err != nil || len(v.Value) != 72+8*c.want {
			t.Errorf("%d words became %d octets, %v", c.words, len(v.Value), err)
		}
	}
	for _, o := range []sample.Origin{sample.InPacket, sample.FollowUp, 255} {
		if b := (Receipt{T2Origin: o, Clock: 0xff}).AppendTo(nil); b[7] != 7 {
			t.Errorf("origin %d: flags %#02x, want only those of the clock", o, b[7])
		}
	}
}

func TestTLVOfAnotherVendorIsNotAReceipt(t *testing.T) {
	good := octets(t, vectorReceiptWire)[TLVHeaderBytes:]
	change := func(at int, to byte) []byte {
		b := append([]byte{}, good...)
		b[at] = to
		return b
	}
	for name, v := range map[string][]byte{
		"nothing": nil, "short": good[:71], "one word too few": good[:80], "one word too many": append(good[:88:88], make([]byte, 8)...),
		"another magic": change(0, 'o'), "another second octet": change(1, 'w'), "another version": change(2, 0x22),
		"five words": append(change(2, 0x15), make([]byte, 24)...), "fifteen words": change(2, 0x1f), "one word": change(2, 0x11),
		"no space for the host block": change(2, 0x1a), "a host block too short": append(change(2, 0x1a), 0, 0, 0, 0),
	} {
		if _, err := ParseReceipt(v); !errors.Is(err, ErrNotReceipt) {
			t.Errorf("%s: got %v, want ErrNotReceipt", name, err)
		}
		// SealCRC and ParseReceipt accept the same Receipts.
		b := TLV{Type: TypeReceipt, Value: v}.AppendTo(vectorSender.AppendTo(nil))
		before := string(b)
		SealCRC(b, false)
		if string(b) != before || CheckCRC(b, false) {
			t.Errorf("%s: SealCRC wrote a CRC", name)
		}
	}
}

// sealedPackets are packets of both modes with their CRC, one with padding after the HMAC.
func sealedPackets(t testing.TB) map[string][]byte {
	t.Helper()
	k := vectorKey()
	open := AppendPadding(vectorReceipt.AppendTo(FollowUp{}.AppendTo(vectorReply.AppendTo(nil))), 21, 9)
	SealCRC(open, false)
	closed := vectorReceipt.AppendTo(FollowUp{}.AppendTo(vectorReply.AppendAuthenticatedTo(nil, k)))
	closed = AppendPadding(PutTLVHMAC(AppendTLVHMAC(closed), AuthenticatedBytes, k), 21, 9)
	SealCRC(closed, true)
	return map[string][]byte{"open": open, "authenticated": closed}
}

func TestAnyChangedBitBreaksTheCRC(t *testing.T) {
	for name, b := range sealedPackets(t) {
		authenticated := name == "authenticated"
		if !CheckCRC(b, authenticated) {
			t.Fatalf("%s: CRC does not match", name)
		}
		s, ok := findSeal(b, authenticated)
		if !ok || (s.mac != 0) != authenticated {
			t.Fatalf("%s: findSeal: %+v %v", name, s, ok)
		}
		for bit := range 8 * len(b) {
			octet := bit / 8
			b[octet] ^= 1 << (bit % 8)
			// The HMACs are written after the CRC and protect themselves.
			free := authenticated && (octet >= 96 && octet < 112 || octet >= s.mac && octet < s.mac+16)
			if CheckCRC(b, authenticated) != free {
				t.Fatalf("%s: bit %d of octet %d flipped: CheckCRC is wrong, not covered %v", name, bit%8, octet, free)
			}
			b[octet] ^= 1 << (bit % 8)
		}
		for n := range len(b) {
			if CheckCRC(b[:n], authenticated) {
				t.Fatalf("%s: CRC matches with %d of %d octets", name, n, len(b))
			}
		}
	}
}

// The last octets of a packet may look like the header of an HMAC TLV.
func TestCRCOmitsOnlyAnActualHMACTLV(t *testing.T) {
	b := vectorReceipt.AppendTo(vectorSender.AppendTo(nil))
	b = TLV{Type: TypeExtraPadding, Value: octets(t, "80 08 0010", zero(16))}.AppendTo(b)
	SealCRC(b, false)
	b[len(b)-1] ^= 1
	if CheckCRC(b, false) {
		t.Error("padding that looks like an HMAC TLV is not covered")
	}
}

func TestFirstReceiptHasTheCRC(t *testing.T) {
	b := vectorSender.AppendTo(nil)
	b = TLV{Type: TypeReceipt, Value: make([]byte, 80)}.AppendTo(b) // another vendor's
	first := len(b) + TLVHeaderBytes + crcOffset
	b = vectorReceipt.AppendTo(vectorReceipt.AppendTo(b))
	SealCRC(b, false)
	if s, ok := findSeal(b, false); !ok || s.crc != first || !CheckCRC(b, false) {
		t.Errorf("CRC at %+v, want %d", s, first)
	}
}

func TestPacketsWithoutReceiptHaveNoCRC(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing": nil, "base": vectorSender.AppendTo(nil), "Follow-Up": FollowUp{}.AppendTo(vectorSender.AppendTo(nil)),
		"after a malformed TLV": vectorReceipt.AppendTo(append(vectorSender.AppendTo(nil), 0, 1, 0xff, 0xff)),
	} {
		for _, authenticated := range []bool{false, true} {
			before := string(b)
			if SealCRC(b, authenticated); string(b) != before || CheckCRC(b, authenticated) {
				t.Errorf("%s, authenticated %v: SealCRC or CheckCRC found a Receipt", name, authenticated)
			}
		}
	}
}
