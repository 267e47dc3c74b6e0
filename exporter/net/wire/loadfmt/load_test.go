package loadfmt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"testing"

	"oneway.example/tests/testseed"
)

// The octets of a packet are part of the format: ends of different versions of the program must agree on them. Another
// implementation computed these.
func TestPacketMatchesTheFormatOctetByOctet(t *testing.T) {
	b := make([]byte, 48)
	Header{Type: Data, Flags: 2, Transfer: 0x0304, Session: 0x05060708090a0b0c, Seq: 0x0d0e0f10}.Fill(b)
	const want = "4f574c44" + "11" + "02" + "0304" + "05060708090a0b0c" + "0d0e0f10" + "0030" + "0000" + "00000000" + "d9e115d9" +
		"f15acfd58600e31d7f61649f49532f58"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("got %s, want\n%s", got, want)
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	for range 1000 {
		h := Header{
			Type: Type(1 + rng.IntN(15)), Flags: uint8(rng.Uint32()), Transfer: uint16(rng.Uint32()),
			Session: rng.Uint64(), Seq: rng.Uint32(), PayloadBytes: uint16(HeaderBytes + rng.IntN(1<<16-HeaderBytes)), Micros: rng.Uint32(),
		}
		b := h.AppendTo([]byte{1, 2, 3})
		if got, err := Parse(b[3:]); err != nil || got != h {
			t.Fatalf("header %+v became %+v, %v", h, got, err)
		}
	}
}

func TestEveryFlippedBitOfTheHeaderIsDetected(t *testing.T) {
	b := Header{Type: Data, Session: 77, Seq: 5, PayloadBytes: 100}.AppendTo(nil)
	for bit := range 8 * HeaderBytes {
		c := bytes.Clone(b)
		c[bit/8] ^= 1 << (bit % 8)
		_, err := Parse(c)
		want := ErrDamaged
		if bit/8 < 4 || bit/8 == 4 && bit%8 >= 4 {
			want = ErrForeign
		}
		if !errors.Is(err, want) {
			t.Errorf("bit %d of octet %d flipped: got %v, want %v", bit%8, bit/8, err, want)
		}
	}
	if _, err := Parse(b[:HeaderBytes-1]); !errors.Is(err, ErrShort) {
		t.Errorf("%v", err)
	}
}

func TestRefusedPacketShowsItsSession(t *testing.T) {
	whole := Header{Type: Data, Session: 77, PayloadBytes: 100}.AppendTo(nil)
	for n := range len(whole) + 1 {
		want := uint64(0)
		if n >= 16 {
			want = 77
		}
		if session, ours := SessionOf(whole[:n]); session != want || ours != (n >= 4) {
			t.Errorf("SessionOf of %d octets: session %d, ours %v", n, session, ours)
		}
	}
	whole[3] ^= 1
	if session, ours := SessionOf(whole); session != 77 || ours {
		t.Errorf("SessionOf of a packet with another magic number: session %d, ours %v", session, ours)
	}
}

func TestKindsOfDamageAreDistinguished(t *testing.T) {
	h := Header{Type: Data, Session: 0xfeed, Seq: 9}
	packet := make([]byte, 1000)
	h.Fill(packet)
	h.PayloadBytes = 1000
	other := make([]byte, 1000)
	Header{Type: Data, Session: 0xfeed, Seq: 10}.Fill(other)
	flip := func(b []byte, at ...int) []byte {
		b = bytes.Clone(b)
		for _, i := range at {
			b[i] ^= 1
		}
		return b
	}
	tail := func(from int, with []byte) []byte { return append(bytes.Clone(packet[:from]), with...) }
	for _, c := range []struct {
		name string
		got  []byte
		want Comparison
	}{
		{"intact", packet, Comparison{}},
		{"truncated", packet[:600], Comparison{Damage: Truncated, First: 600}},
		{"truncated to its header", packet[:HeaderBytes], Comparison{Damage: Truncated, First: HeaderBytes}},
		{"one bit", flip(packet, 500), Comparison{Damage: BitErrors, First: 500, Differing: 1, BitsDiffering: 1}},
		{"one bit in the last octet", flip(packet, 999), Comparison{Damage: BitErrors, First: 999, Differing: 1, BitsDiffering: 1}},
		{"bits far apart", flip(packet, 40, 500, 998), Comparison{Damage: BitErrors, First: 40, Differing: 3, BitsDiffering: 3}},
		{"one bit, and truncated", flip(packet[:600], 500), Comparison{Damage: BitErrors, First: 500, Differing: 1, BitsDiffering: 1}},
		{"too long", tail(1000, []byte("more")), Comparison{Damage: Overwritten, First: 1000, Differing: 4}},
	} {
		if got := Compare(c.got, h); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	for name, got := range map[string][]byte{
		"zeros":                          tail(700, make([]byte, 300)),
		"another packet's end":           tail(700, other[700:]),
		"the same packet's, shifted":     tail(700, packet[600:900]),
		"zeros, and truncated":           tail(700, make([]byte, 100)),
		"all of another packet":          tail(HeaderBytes, other[HeaderBytes:]),
		"the last eight octets are zero": tail(992, make([]byte, 8)),
	} {
		v := Compare(got, h)
		if v.Damage != Overwritten || v.First > 1000 || v.Differing == 0 {
			t.Errorf("%s: got %+v, want Overwritten", name, v)
		}
	}
}

func TestAppendContentReturnsTheOctetsSent(t *testing.T) {
	packet := make([]byte, 300)
	h := Header{Type: Data, Session: 1, Seq: 2, Transfer: 3}
	h.Fill(packet)
	h.PayloadBytes = 300
	for _, c := range [][2]int{{0, 300}, {0, 10}, {10, 40}, {31, 33}, {32, 300}, {200, 1000}, {300, 310}, {400, 500}} {
		want := packet[min(c[0], 300):min(c[1], 300)]
		if got := h.AppendContent(nil, c[0], c[1]); !bytes.Equal(got, want) {
			t.Errorf("%v: got %x, want %x", c, got, want)
		}
	}
}

func TestChallengeIsNeverLongerThanItsHello(t *testing.T) {
	hello := AppendHello(nil, 5, KeepAlive, nil)
	h, err := Parse(hello)
	if err != nil || h.Type != Hello || h.Session != 5 || h.Flags != KeepAlive || len(hello) != 96 {
		t.Fatalf("Hello of %d octets, header %+v, %v", len(hello), h, err)
	}
	for _, n := range []int{0, 1, MaxCookieBytes, 2 * MaxCookieBytes} {
		cookie := bytes.Repeat([]byte{7}, n)
		c := AppendChallenge(nil, 5, 0, cookie)
		h, err := Parse(c)
		if err != nil || len(c) > len(hello) {
			t.Fatalf("Challenge of %d octets, %v", len(c), err)
		}
		if got := Cookie(c, h); !bytes.Equal(got, cookie[:min(n, MaxCookieBytes)]) {
			t.Errorf("a cookie of %d octets became %x", n, got)
		}
		if Cookie(append(c, 0), h) != nil || Cookie(hello, Header{Type: Data, PayloadBytes: HelloBytes}) != nil {
			t.Error("Cookie returned a cookie of another type of packet")
		}
		returned := AppendHello(nil, 5, KeepAlive, cookie)
		h, err = Parse(returned)
		if err != nil || len(returned) != len(hello) {
			t.Fatalf("Hello of %d octets, %v", len(returned), err)
		}
		if want := append(cookie, make([]byte, MaxCookieBytes)...)[:MaxCookieBytes]; !bytes.Equal(Cookie(returned, h), want) {
			t.Errorf("a Hello returns %x, want %x", Cookie(returned, h), want)
		}
	}
}

func TestPacketsDoNotAllocate(t *testing.T) {
	b := make([]byte, 1472)
	h := Header{Type: Data, Session: 9}
	h.Fill(b) // makes the table
	if n := testing.AllocsPerRun(100, func() {
		h.Seq++
		h.Fill(b)
		got, err := Parse(b)
		if err != nil || Compare(b, got).Damage != Intact {
			t.Fatalf("header %+v, %v", got, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzPacket checks that no input causes harm, and that a verdict's offsets lie within the packet.
func FuzzPacket(f *testing.F) {
	packet := make([]byte, 100)
	Header{Type: Data, Session: 1, Seq: 2}.Fill(packet)
	f.Add(packet)
	f.Add(AppendHello(nil, 1, 0, nil))
	f.Add(AppendChallenge(nil, 1, 0, []byte("cookie")))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Parse(b)
		if err == nil && h.PayloadBytes < HeaderBytes {
			t.Errorf("%+v", h)
		}
		if err != nil {
			// Continue with a refused header: its values must cause no harm.
			if len(b) < HeaderBytes {
				return
			}
			h.PayloadBytes = max(h.PayloadBytes, HeaderBytes)
		}
		v := Compare(b, h)
		if v.First < 0 || v.First > len(b) || v.Differing < 0 || v.Differing > len(b) || v.Damage == Intact && len(b) != int(h.PayloadBytes) {
			t.Errorf("verdict %+v of %d octets", v, len(b))
		}
		if n := len(h.AppendContent(nil, v.First, v.First+256)); n > 256 {
			t.Errorf("content of %d octets", n)
		}
		_ = Cookie(b, h)
	})
}

func BenchmarkFill(b *testing.B) {
	packet := make([]byte, 1472)
	h := Header{Type: Data, Session: 1}
	b.ReportAllocs()
	b.SetBytes(int64(len(packet)))
	for b.Loop() {
		h.Seq++
		h.Fill(packet)
	}
}

func BenchmarkCompare(b *testing.B) {
	packet := make([]byte, 1472)
	h := Header{Type: Data, Session: 1}
	h.Fill(packet)
	b.ReportAllocs()
	b.SetBytes(int64(len(packet)))
	for b.Loop() {
		got, err := Parse(packet)
		if err != nil || Compare(packet, got).Damage != Intact {
			b.Fatal(err)
		}
	}
}
