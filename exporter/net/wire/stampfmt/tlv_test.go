package stampfmt

import (
	"errors"
	"testing"
)

func TestNextTLVNeverReadsBeyondThePacket(t *testing.T) {
	for _, c := range []struct {
		name, wire string
		kind       TLVType // as far as the header is complete
	}{
		{"nothing", "", 0},
		{"half a header", "80 01 00", 0},
		{"no value", "80 07 0010", TypeFollowUp},
		{"one octet too few", "80 04 0004 b94500", TypeClassOfService},
		{"the longest", "00 01 ffff" + zero(1000), TypeExtraPadding},
	} {
		got, rest, err := NextTLV(octets(t, c.wire))
		if !errors.Is(err, ErrMalformedTLV) || rest != nil || got.Value != nil || got.Type != c.kind {
			t.Errorf("%s: got %+v, %x, %v", c.name, got, rest, err)
		}
	}
}

// Appending to a value must not overwrite the next TLV.
func TestAppendingToAValueDoesNotOverwriteTheNextTLV(t *testing.T) {
	b := octets(t, "80 04 0004 b9450000 80 03 0004 01020401")
	v, rest, err := NextTLV(b)
	if err != nil || len(rest) != 8 {
		t.Fatalf("NextTLV: rest %x, %v", rest, err)
	}
	_ = append(v.Value, 0xff)
	if b[8] != 0x80 {
		t.Error("appending to a value changed the next TLV")
	}
}

func TestValuesOfWrongLengthAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  int
		parse func([]byte) error
	}{
		{"Class of Service", 4, func(v []byte) error { _, err := ParseClassOfService(v); return err }},
		{"Direct Measurement", 12, func(v []byte) error { _, err := ParseDirectMeasurement(v); return err }},
		{"Follow-Up", 16, func(v []byte) error { _, err := ParseFollowUp(v); return err }},
	} {
		for n := range c.want + 9 {
			good := n == c.want
			if err := c.parse(make([]byte, n)); (err == nil) != good || err != nil && !errors.Is(err, ErrMalformedTLV) {
				t.Errorf("%s of %d octets: got %v", c.name, n, err)
			}
		}
	}
}

func TestFieldsAreLimitedToTheirBits(t *testing.T) {
	got := ClassOfService{DSCP1: 0xff, ECN: 0xff}.AppendTo(nil)
	if want := octets(t, "80 04 0004 fc0c 0000"); string(got) != string(want) {
		t.Errorf("Class of Service: %x, want %x", got, want)
	}
}

func TestValuesTooLongForTheLengthFieldAreTruncated(t *testing.T) {
	long := make([]byte, 70_000)
	for name, b := range map[string][]byte{
		"TLV":     TLV{Type: 200, Value: long}.AppendTo(nil),
		"padding": AppendPadding(nil, len(long), 1),
	} {
		if v, rest, err := NextTLV(b); err != nil || len(rest) != 0 || len(v.Value) != 65_535 {
			t.Errorf("%s: %d octets of value, %d after it, %v", name, len(v.Value), len(rest), err)
		}
	}
}

// RFC 8972 section 4: a reflector that supports no TLVs returns them unchanged.
func TestSendersSetTheUnrecognizedFlag(t *testing.T) {
	for name, b := range map[string][]byte{
		"padding": AppendPadding(nil, 5, 1),
		"HMAC":    PutTLVHMAC(AppendTLVHMAC(vectorSender.AppendTo(nil)), UnauthenticatedBytes, vectorKey())[UnauthenticatedBytes:],
	} {
		if b[0] != FlagUnrecognized {
			t.Errorf("%s: flags %#x, want U", name, b[0])
		}
	}
}

func TestPaddingDependsOnNumberAndOffset(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 63, 1400} {
		v, _, err := NextTLV(AppendPadding([]byte{}, n, 7))
		if err != nil || v.Type != TypeExtraPadding || len(v.Value) != n || !CheckPadding(v.Value, 7) {
			t.Fatalf("padding of %d octets: %v", n, err)
		}
		for bit := range 8 * n {
			v.Value[bit/8] ^= 1 << (bit % 8)
			if CheckPadding(v.Value, 7) {
				t.Fatalf("%d octets: accepted with bit %d flipped", n, bit)
			}
			v.Value[bit/8] ^= 1 << (bit % 8)
		}
		if n < 7 {
			continue
		}
		for _, seq := range []uint32{0, 6, 8, 7 << 8, 1<<32 - 1} {
			if CheckPadding(v.Value, seq) {
				t.Errorf("%d octets: padding of packet 7 is accepted for packet %d", n, seq)
			}
		}
		if n > 16 && CheckPadding(v.Value[8:], 7) {
			t.Errorf("%d octets: the pattern repeats", n)
		}
	}
	if b := AppendPadding(nil, -1, 7); string(b) != string([]byte{0x80, 1, 0, 0}) {
		t.Errorf("padding of -1 octets is %x", b)
	}
}

// A link with compression must not shorten a packet.
func TestPaddingLooksRandom(t *testing.T) {
	var ones [8]int
	var counts [256]int
	const packets, size = 64, 1024
	for seq := range uint32(packets) {
		for _, x := range AppendPadding(nil, size, seq)[TLVHeaderBytes:] {
			counts[x]++
			for bit := range 8 {
				ones[bit] += int(x >> bit & 1)
			}
		}
	}
	// Each octet is expected 256 times, with a standard deviation of 16.
	for x, n := range counts {
		if n < 256-6*16 || n > 256+6*16 {
			t.Errorf("octet %#02x occurs %d times in %d", x, n, packets*size)
		}
	}
	for bit := range 8 {
		if share := float64(ones[bit]) / (packets * size); share < 0.49 || share > 0.51 {
			t.Errorf("bit %d is set in %.3f of the octets", bit, share)
		}
	}
}
