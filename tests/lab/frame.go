package lab

import (
	"encoding/binary"
	"net/netip"
)

// The numbers of Ethernet, IP and ICMPv6 that the link reads.
const (
	ethernetHeader = 14
	etherTypeIPv4  = 0x0800
	etherTypeIPv6  = 0x86dd
	protocolHop    = 0
	protocolTCP    = 6
	protocolUDP    = 17
	protocolICMPv6 = 58
	ipv6Header     = 40
	udpHeader      = 8
	tcpHeader      = 20 // without options
)

// frame has the properties of an Ethernet frame that the link needs. Offsets count from
// the start of the frame.
type frame struct {
	// control: ARP, neighbor discovery, multicast listener reports:
	// packets that a link needs, and no traffic.
	control bool
	// size is the IP packet's length in bytes.
	size int
	// protocol is the IP protocol number.
	protocol uint8
	// udp is the offset of the UDP header of an unfragmented packet, or 0;
	// end is the end of its payload.
	udp, end int
	// tcp is the offset of the TCP header of an unfragmented segment, or 0; end is the end of its payload.
	tcp int
	// source and destination of the IP header; ports only with udp.
	src, dst netip.AddrPort
}

// resetFlag is RST in the flags of a TCP header (RFC 9293, section 3.1).
const resetFlag = 1 << 2

// segment reads the TCP header; false if the frame is no complete TCP segment. flow ignores the ports of TCP: both are of
// the segment only.
func (f *frame) segment(b []byte) (s Segment, ok bool) {
	if f.tcp == 0 {
		return s, false
	}
	h := b[f.tcp:f.end]
	length := int(h[12]>>4) * 4
	if length < tcpHeader || length > len(h) {
		return s, false
	}
	return Segment{
		Source:      netip.AddrPortFrom(f.src.Addr(), binary.BigEndian.Uint16(h[0:2])),
		Destination: netip.AddrPortFrom(f.dst.Addr(), binary.BigEndian.Uint16(h[2:4])),
		Sequence:    binary.BigEndian.Uint32(h[4:8]), Acknowledgment: binary.BigEndian.Uint32(h[8:12]),
		Payload: len(h) - length, Reset: h[13]&resetFlag != 0,
	}, true
}

// payload is the UDP payload, nil if the frame is no complete UDP packet.
func (f *frame) payload(b []byte) []byte {
	if f.udp == 0 {
		return nil
	}
	return b[f.udp+udpHeader : f.end]
}

// flow is a hash of addresses, protocol and ports (FNV-1a).
func (f *frame) flow() uint32 {
	h := uint32(2166136261)
	for _, a := range [...]netip.AddrPort{f.src, f.dst} {
		for _, b := range a.Addr().As16() {
			h = (h ^ uint32(b)) * 16777619
		}
		h = (h ^ uint32(a.Port())) * 16777619
	}
	return (h ^ uint32(f.protocol)) * 16777619
}

// parseFrame never fails: an unknown frame is control, so that it
// passes untouched.
func parseFrame(b []byte) frame {
	if len(b) < ethernetHeader {
		return frame{control: true}
	}
	packet := b[ethernetHeader:]
	switch binary.BigEndian.Uint16(b[12:14]) {
	case etherTypeIPv4:
		return parseIPv4(packet)
	case etherTypeIPv6:
		return parseIPv6(packet)
	}
	return frame{control: true}
}

func parseIPv4(p []byte) frame {
	if len(p) < 20 || p[0]>>4 != 4 {
		return frame{control: true}
	}
	header := int(p[0]&0x0f) * 4
	f := frame{size: int(binary.BigEndian.Uint16(p[2:4])), protocol: p[9]}
	if header < 20 || f.size < header || f.size > len(p) {
		return frame{control: true}
	}
	src, dst := netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20]))
	// More Fragments, or a fragment offset: ports or payload are incomplete.
	fragment := binary.BigEndian.Uint16(p[6:8])&0x3fff != 0
	f.transport(p, header, src, dst, fragment)
	return f
}

func parseIPv6(p []byte) frame {
	if len(p) < ipv6Header || p[0]>>4 != 6 {
		return frame{control: true}
	}
	f := frame{size: ipv6Header + int(binary.BigEndian.Uint16(p[4:6])), protocol: p[6]}
	if f.size > len(p) {
		return frame{control: true}
	}
	switch f.protocol {
	case protocolHop:
		// Multicast listener reports carry a router alert option here.
		f.control = true
	case protocolICMPv6:
		// RFC 4861: 133..137, neighbor discovery.
		if f.size > ipv6Header && p[ipv6Header] >= 133 && p[ipv6Header] <= 137 {
			f.control = true
		}
	}
	src, dst := netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
	f.transport(p, ipv6Header, src, dst, false)
	return f
}

// transport finds the UDP or TCP header. p starts with the IP header of that length.
func (f *frame) transport(p []byte, header int, src, dst netip.Addr, fragment bool) {
	f.src, f.dst = netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)
	if f.protocol == protocolTCP && !fragment && f.size >= header+tcpHeader {
		f.tcp, f.end = ethernetHeader+header, ethernetHeader+f.size
	}
	if f.protocol != protocolUDP || fragment || f.size < header+udpHeader {
		return
	}
	u := p[header:f.size]
	length := int(binary.BigEndian.Uint16(u[4:6]))
	if length < udpHeader || length > len(u) {
		return
	}
	f.udp = ethernetHeader + header
	f.end = f.udp + length
	f.src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(u[0:2]))
	f.dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(u[2:4]))
}

// damage changes one byte of the UDP payload by a mask that is not zero, and
// repairs the checksum if repair is set. It reports whether there
// was a payload.
func (f *frame) damage(b []byte, position uint64, mask uint8, repair bool) bool {
	payload := f.payload(b)
	if len(payload) == 0 || mask == 0 {
		return false
	}
	payload[position%uint64(len(payload))] ^= mask
	if repair {
		f.repairChecksum(b)
	}
	return true
}

// repairChecksum computes the UDP checksum anew (RFC 768, RFC 8200 section
// 8.1). An IPv4 packet without checksum stays without.
func (f *frame) repairChecksum(b []byte) {
	udp := b[f.udp:f.end]
	stored := udp[6:8]
	if f.src.Addr().Is4() && stored[0] == 0 && stored[1] == 0 {
		return
	}
	stored[0], stored[1] = 0, 0
	sum := uint32(protocolUDP) + uint32(len(udp))
	sum = sumWords(sum, f.src.Addr().AsSlice())
	sum = sumWords(sum, f.dst.Addr().AsSlice())
	sum = sumWords(sum, udp)
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	checksum := ^uint16(sum)
	if checksum == 0 {
		checksum = 0xffff // zero would mean: none
	}
	binary.BigEndian.PutUint16(stored, checksum)
}

// sumWords adds 16-bit big-endian words; an odd byte counts as the high one.
func sumWords(sum uint32, b []byte) uint32 {
	for len(b) >= 2 {
		sum += uint32(b[0])<<8 | uint32(b[1])
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return sum
}

// mark gives an IP packet the mark CE if wanted, and reports whether its transport is ECN-capable, and
// whether it was marked here (RFC 3168 section 5).
func (f *frame) mark(b []byte, wanted bool) (capable, marked bool) {
	const ce = 3
	v4 := f.src.Addr().Is4()
	class, shift := &b[ethernetHeader+1], 4 // the Traffic Class of IPv6 has its low bits in the second byte's high ones
	if v4 {
		shift = 0
	}
	ecn := *class >> shift & ce
	if ecn == 0 {
		return false, false
	}
	if !wanted || ecn == ce {
		return true, false
	}
	*class |= ce << shift
	if v4 {
		header := b[ethernetHeader:][:int(b[ethernetHeader]&0x0f)*4]
		header[10], header[11] = 0, 0
		sum := sumWords(0, header)
		for sum > 0xffff {
			sum = sum>>16 + sum&0xffff
		}
		binary.BigEndian.PutUint16(header[10:], ^uint16(sum))
	}
	return true, true
}
