package interop

import (
	"encoding/binary"

	"oneway.example/exporter/net/wire/stampfmt"
)

// captured is one UDP packet between a sender and a reflector of documentation addresses (RFC 5737), with the expected
// fields of a dissector.
type captured struct {
	name    string
	reply   bool
	payload []byte
	want    map[string]string
}

// capture makes a pcap file of raw IPv4 packets with nanosecond times
// (draft-ietf-opsawg-pcap: magic, version 2.4, snap length, link type 101).
func capture(packets []captured) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b23c4d)
	b = le.AppendUint16(le.AppendUint16(b, 2), 4)
	b = le.AppendUint32(le.AppendUint32(le.AppendUint64(b, 0), 65535), 101)
	for i, p := range packets {
		ip := datagram(p)
		b = le.AppendUint32(le.AppendUint32(b, uint32(i)), 0)
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(ip))), uint32(len(ip)))
		b = append(b, ip...)
	}
	return b
}

// datagram wraps p in IPv4 (RFC 791) and UDP (RFC 768), with valid checksums.
func datagram(p captured) []byte {
	be := binary.BigEndian
	sender, reflector := []byte{192, 0, 2, 1}, []byte{192, 0, 2, 2}
	from, to, source, destination := uint16(senderPort), uint16(stampfmt.Port), sender, reflector
	if p.reply {
		from, to, source, destination = to, from, reflector, sender
	}
	udp := be.AppendUint16(be.AppendUint16(nil, from), to)
	udp = append(be.AppendUint32(udp, uint32(8+len(p.payload))<<16), p.payload...)

	pseudo := append(append([]byte{}, source...), destination...)
	pseudo = be.AppendUint16(append(pseudo, 0, 17), uint16(len(udp)))
	be.PutUint16(udp[6:], checkSum(append(pseudo, udp...)))

	ip := be.AppendUint16([]byte{0x45, 0}, uint16(20+len(udp)))
	ip = append(append(append(ip, 0, 0, 0x40, 0, 255, 17, 0, 0), source...), destination...)
	be.PutUint16(ip[10:], checkSum(ip))
	return append(ip, udp...)
}

// checkSum is that of RFC 1071.
func checkSum(b []byte) uint16 {
	sum := uint32(0)
	for i, x := range b {
		sum += uint32(x) << (8 * (1 - i%2))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
