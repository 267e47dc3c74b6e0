package lab

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
)

// udpFrame builds an Ethernet frame with a UDP packet and its right checksum,
// by code that shares nothing with repairChecksum.
func udpFrame(t testing.TB, src, dst netip.AddrPort, payload []byte) []byte {
	t.Helper()
	b := make([]byte, 12, ethernetHeader+ipv6Header+udpHeader+len(payload))
	length := uint16(udpHeader + len(payload))
	var pseudo []byte
	if src.Addr().Is4() {
		b = append(b, 0x08, 0x00, 0x45, 0)
		b = binary.BigEndian.AppendUint16(b, 20+length)
		b = append(b, 0, 0, 0, 0, 64, protocolUDP, 0, 0)
	} else {
		b = append(b, 0x86, 0xdd, 0x60, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, length)
		b = append(b, protocolUDP, 64)
	}
	b = append(append(b, src.Addr().AsSlice()...), dst.Addr().AsSlice()...)
	pseudo = append(append(pseudo, src.Addr().AsSlice()...), dst.Addr().AsSlice()...)
	pseudo = binary.BigEndian.AppendUint16(append(pseudo, 0, protocolUDP), length)
	udp := binary.BigEndian.AppendUint16(nil, src.Port())
	udp = binary.BigEndian.AppendUint16(udp, dst.Port())
	udp = binary.BigEndian.AppendUint16(udp, length)
	udp = append(append(udp, 0, 0), payload...)
	sum := onesComplement(append(pseudo, udp...))
	binary.BigEndian.PutUint16(udp[6:], ^sum)
	return append(b, udp...)
}

// onesComplement adds with end-around carry, word by word (RFC 1071).
func onesComplement(b []byte) uint16 {
	if len(b)%2 == 1 {
		b = append(bytes.Clone(b), 0)
	}
	var sum uint16
	for ; len(b) > 0; b = b[2:] {
		word := binary.BigEndian.Uint16(b)
		sum += word
		if sum < word {
			sum++
		}
	}
	return sum
}

// checksumHolds verifies a frame as a receiver does: everything adds up to ones.
func checksumHolds(f frame, b []byte) bool {
	udp := b[f.udp:f.end]
	pseudo := append(f.src.Addr().AsSlice(), f.dst.Addr().AsSlice()...)
	pseudo = binary.BigEndian.AppendUint16(append(pseudo, 0, protocolUDP), uint16(len(udp)))
	return onesComplement(append(pseudo, udp...)) == 0xffff
}

var families = []struct {
	name     string
	src, dst netip.AddrPort
	header   int
}{
	{"IPv4", netip.MustParseAddrPort("10.77.0.1:5000"), netip.MustParseAddrPort("10.77.0.2:862"), 20},
	{"IPv6", netip.MustParseAddrPort("[fd77::1]:5000"), netip.MustParseAddrPort("[fd77::2]:862"), 40},
}

func TestFrameSizeCountsIPBytesOnly(t *testing.T) {
	for _, family := range families {
		b := udpFrame(t, family.src, family.dst, make([]byte, 100))
		f := parseFrame(append(b, 0, 0, 0)) // Ethernet padding
		if want := family.header + udpHeader + 100; f.size != want || f.control {
			t.Errorf("%s: size %d, want %d; control %v", family.name, f.size, want, f.control)
		}
		if f.src != family.src || f.dst != family.dst || len(f.payload(b)) != 100 {
			t.Errorf("%s: got %v > %v, payload of %d", family.name, f.src, f.dst, len(f.payload(b)))
		}
	}
}

func TestSegmentsHaveTheirHeader(t *testing.T) {
	for _, family := range families {
		b := udpFrame(t, family.src, family.dst, make([]byte, 100))
		// The UDP header and payload become a TCP header with 12 bytes of options, and 76 bytes of payload.
		tcp := b[len(b)-108:]
		binary.BigEndian.PutUint32(tcp[4:], 0xfffffff0)
		binary.BigEndian.PutUint32(tcp[8:], 77)
		tcp[12], tcp[13] = 8<<4, 1<<2
		b[map[int]int{20: 23, 40: 20}[family.header]] = protocolTCP
		f := parseFrame(append(bytes.Clone(b), 0, 0, 0)) // Ethernet padding
		want := Segment{Source: family.src, Destination: family.dst, Sequence: 0xfffffff0, Acknowledgment: 77, Payload: 76, Reset: true}
		if s, ok := f.segment(b); !ok || s != want || f.payload(b) != nil {
			t.Errorf("%s: %+v, %v; want %+v", family.name, s, ok, want)
		}
		for _, length := range []byte{0, 4, 15} { // no header, a short one
			tcp[12] = length << 4
			s, ok := f.segment(b)
			if ok != (length == 15) {
				t.Errorf("%s: a header of %d words is %+v, %v", family.name, length, s, ok)
			}
		}
		tcp[12] = 15 << 4
		short := parseFrame(b[:len(b)-60])
		if s, ok := short.segment(b); ok {
			t.Errorf("%s: a cut frame is %+v", family.name, s)
		}
	}
}

func TestDamageChangesPayloadAndRepairsChecksum(t *testing.T) {
	for _, family := range families {
		for position := range uint64(7) { // odd length: the last byte is padded in the sum
			clean := udpFrame(t, family.src, family.dst, []byte("payload"))
			b := bytes.Clone(clean)
			f := parseFrame(b)
			if !checksumHolds(f, b) {
				t.Fatalf("%s: the test's own frame has a wrong checksum", family.name)
			}
			if !f.damage(b, position+7, 0x81, true) {
				t.Fatalf("%s: not damaged", family.name)
			}
			if !checksumHolds(f, b) {
				t.Errorf("%s: byte %d: checksum not repaired", family.name, position)
			}
			if bytes.Equal(f.payload(b), f.payload(clean)) || !bytes.Equal(b[:f.udp+6], clean[:f.udp+6]) {
				t.Errorf("%s: byte %d: damage outside the payload, or none", family.name, position)
			}
			b = bytes.Clone(clean)
			f.damage(b, position, 0x81, false)
			if checksumHolds(f, b) {
				t.Errorf("%s: byte %d: checksum kept, and yet right", family.name, position)
			}
		}
	}
}

func TestDamageLeavesAbsentIPv4ChecksumAbsent(t *testing.T) {
	b := udpFrame(t, families[0].src, families[0].dst, []byte("x"))
	f := parseFrame(b)
	b[f.udp+6], b[f.udp+7] = 0, 0
	f.damage(b, 0, 1, true)
	if b[f.udp+6] != 0 || b[f.udp+7] != 0 {
		t.Error("a checksum appeared where the sender sent none")
	}
}

func TestFramesThatAreNotTraffic(t *testing.T) {
	v4 := udpFrame(t, families[0].src, families[0].dst, []byte("x"))
	v6 := udpFrame(t, families[1].src, families[1].dst, []byte("x"))
	edit := func(b []byte, at int, v ...byte) []byte {
		c := bytes.Clone(b)
		copy(c[at:], v)
		return c
	}
	control := map[string][]byte{
		"short":              {1, 2, 3},
		"ARP":                edit(v4, 12, 0x08, 0x06),
		"IPv4 cut short":     v4[:ethernetHeader+19],
		"IPv4 header length": edit(v4, ethernetHeader, 0x44),
		"IPv4 total length":  edit(v4, ethernetHeader+2, 0xff, 0xff),
		"IPv6 length":        edit(v6, ethernetHeader+4, 0xff, 0xff),
		"neighbor advert":    edit(edit(v6, ethernetHeader+6, protocolICMPv6), ethernetHeader+ipv6Header, 136),
		"listener report":    edit(v6, ethernetHeader+6, protocolHop),
	}
	for name, b := range control {
		if f := parseFrame(b); !f.control {
			t.Errorf("%s: taken for traffic: %+v", name, f)
		}
	}
	fragment := edit(v4, ethernetHeader+6, 0x20, 0)
	if f := parseFrame(fragment); f.control || f.payload(fragment) != nil {
		t.Errorf("fragment: want traffic without a payload, got %+v", f)
	}
	echo := edit(edit(v6, ethernetHeader+6, protocolICMPv6), ethernetHeader+ipv6Header, 128)
	if f := parseFrame(echo); f.control {
		t.Error("ICMPv6 echo: is traffic")
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, family := range families {
		b := udpFrame(f, family.src, family.dst, make([]byte, 40))
		f.Add(bytes.Clone(b))
		b[map[int]int{20: 23, 40: 20}[family.header]] = protocolTCP
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := parseFrame(b)
		if p.control {
			return
		}
		if p.size > len(b)-ethernetHeader {
			t.Fatalf("size %d in a frame of %d", p.size, len(b))
		}
		if s, ok := p.segment(b); ok && (s.Payload < 0 || s.Payload > p.size-tcpHeader) {
			t.Fatalf("a payload of %d bytes in a packet of %d", s.Payload, p.size)
		}
		before := bytes.Clone(b)
		if p.damage(b, 3, 0xff, true) == bytes.Equal(p.payload(before), p.payload(b)) {
			t.Fatal("damage and its report disagree")
		}
	})
}

// A marked packet has the mark, a header whose checksum holds, and is otherwise the same; one without an ECN-capable
// transport stays as it is.
func TestMarkChangesOnlyTheCodepointOfCapablePackets(t *testing.T) {
	for _, host := range []string{"192.0.2.1", "2001:db8::1"} {
		at := netip.AddrPortFrom(netip.MustParseAddr(host), 7)
		for codepoint := range byte(4) {
			b := udpFrame(t, at, at, []byte("abc"))
			v6 := at.Addr().Is6()
			if v6 {
				b[15] |= codepoint << 4
			} else {
				b[15] |= codepoint
				binary.BigEndian.PutUint16(b[24:], ^onesComplement(b[14:34]))
			}
			f, before := parseFrame(b), bytes.Clone(b)
			if capable, marked := f.mark(b, false); capable != (codepoint > 0) || marked || !bytes.Equal(b, before) {
				t.Errorf("%s, codepoint %d: %v, %v without a mark", host, codepoint, capable, marked)
			}
			capable, marked := f.mark(b, true)
			if capable != (codepoint > 0) || marked != (codepoint == 1 || codepoint == 2) {
				t.Errorf("%s, codepoint %d: %v, %v", host, codepoint, capable, marked)
			}
			if !v6 && onesComplement(b[14:34]) != 0xffff {
				t.Errorf("%s, codepoint %d: wrong checksum of the header", host, codepoint)
			}
			if marked {
				before[15] |= map[bool]byte{false: 3, true: 3 << 4}[v6]
			}
			if !v6 {
				copy(before[24:26], b[24:26]) // the checksum
			}
			if !bytes.Equal(b, before) {
				t.Errorf("%s, codepoint %d: another byte has changed", host, codepoint)
			}
		}
	}
}
