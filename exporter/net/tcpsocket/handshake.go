package tcpsocket

import (
	"encoding/binary"
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/tcpstamp"
)

// saveSYN makes the kernel keep the SYN of accepted connections: without it they lack only what Handshake knows from it.
func saveSYN(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_SAVE_SYN, 1) }

// Handshake returns what this end knows of the handshake. An accepted connection has its SYN once: the kernel forgets it
// when it was read. A SYN that arrived while the kernel sent SYN cookies was not saved.
func (c *Conn) Handshake() (h tcpstamp.Handshake, err error) {
	var t raw
	if _, err := c.tcpInfo(&t); err != nil {
		return h, err
	}
	h.Timestamps, h.SACK = t.Options&Timestamps != 0, t.Options&SACK != 0
	h.PeerScale, h.OwnScale = scales(&t)
	if c.dialed.IsZero() {
		err = c.arrivedSYN(&h)
	} else {
		if h.MSS = int32(t.Advmss); h.Timestamps {
			h.MSS += 12 // the kernel keeps the announced one less the option that each segment has
		}
		err = c.sentSYN(&h, &t)
	}
	if err != nil { // a handshake without its TSval would be that of another SYN
		return tcpstamp.Handshake{}, err
	}
	return h, nil
}

// scales reads tcpi_snd_wscale and tcpi_rcv_wscale, bit fields of four bits that package unix leaves out.
func scales(t *raw) (peer, own int8) {
	if t.Options&WindowScale == 0 {
		return -1, -1
	}
	b := *(*uint8)(unsafe.Add(unsafe.Pointer(&t.Options), 1))
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // big endian
		return int8(b >> 4), int8(b & 15)
	}
	return int8(b & 15), int8(b >> 4)
}

// arrivedSYN adds what the saved SYN has.
func (c *Conn) arrivedSYN(h *tcpstamp.Handshake) error {
	var b [60 + 40 + 60]byte // headers of IP and TCP with all options, or of IPv6 with some
	size := uint32(len(b))
	err := c.control(func(fd int) error {
		return getsockopt(fd, unix.IPPROTO_TCP, unix.TCP_SAVED_SYN, unsafe.Pointer(&b), &size)
	})
	if errors.Is(err, unix.EINVAL) || err == nil && size == 0 { // longer than b, or not saved
		return nil
	}
	if err != nil {
		return err
	}
	if s, ok := parseSYN(b[:min(int(size), len(b))]); ok {
		h.SYN, h.TTL, h.MSS, h.PeerScale, h.TSval = true, s.ttl, s.mss, s.scale, s.tsval
	}
	return nil
}

// sentSYN adds what this end has sent. The timestamp of the SYN is computed back from the present one. The SYN, or its
// last retransmission, left between the begin of connect(2) and the round trip before its end.
func (c *Conn) sentSYN(h *tcpstamp.Handshake, t *raw) error {
	var ttl, stamp int
	var before, after time.Time
	err := c.control(func(fd int) (err error) {
		level, opt := unix.IPPROTO_IP, unix.IP_TTL
		if c.IPv6() {
			level, opt = unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS
		}
		if ttl, err = unix.GetsockoptInt(fd, level, opt); err == nil {
			before = time.Now()
			stamp, err = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_TIMESTAMP)
			after = time.Now()
		}
		return err
	})
	if err != nil {
		return err
	}
	h.TTL = uint8(ttl)
	if h.Timestamps {
		unit := time.Millisecond
		if t.Options&microseconds != 0 {
			unit = time.Microsecond
		}
		minRTT := time.Duration(t.Min_rtt) * time.Microsecond
		h.TSval, h.TSvalError = sentTSval(uint32(stamp), unit, before.Sub(c.dialed)+minRTT, after.Sub(c.dialing))
	}
	return nil
}

// microseconds is TCPI_OPT_USEC_TS (Linux 6.7): the route has the feature tcp_usec_ts.
const microseconds = 64

// sentTSval is the timestamp value, in units, of a segment that was sent between most and least ago, if it is value now.
func sentTSval(value uint32, unit, least, most time.Duration) (tsval, wrong uint32) {
	least, most = min(least, most), max(least, most)
	ago := (least + most) / 2
	const rounding = 3 // of both values down to a unit, of ago, and of the lowest bit, which new kernels overwrite
	return value - uint32(ago/unit), uint32((most-least)/2/unit) + rounding
}

// syn is what a SYN announces. Absent options are mss 0, scale -1, tsval 0.
type syn struct {
	ttl   uint8
	mss   int32
	scale int8
	tsval uint32
}

// parseSYN reads the IP header and TCP header of a SYN (TCP_SAVED_SYN). It rejects what no kernel accepts as one.
func parseSYN(b []byte) (s syn, ok bool) {
	if len(b) < 20 {
		return syn{}, false
	}
	switch b[0] >> 4 {
	case 4:
		n := int(b[0]&15) * 4
		if n < 20 || n > len(b) || b[9] != unix.IPPROTO_TCP {
			return syn{}, false
		}
		s.ttl, b = b[8], b[n:]
	case 6:
		if b, s.ttl = skipIPv6(b); b == nil {
			return syn{}, false
		}
	default:
		return syn{}, false
	}
	const flagSYN, flagACK, flagRST = 2, 16, 4
	if len(b) < 20 || b[13]&(flagSYN|flagACK|flagRST) != flagSYN {
		return syn{}, false
	}
	n := int(b[12]>>4) * 4
	if n < 20 || n > len(b) {
		return syn{}, false
	}
	return s, s.options(b[20:n])
}

// skipIPv6 returns what follows an IPv6 header and its extension headers (RFC 8200 section 4), and the hop limit; nil: not
// TCP.
func skipIPv6(b []byte) (tcp []byte, hops uint8) {
	if len(b) < 40 {
		return nil, 0
	}
	next := b[6]
	hops, b = b[7], b[40:]
	for {
		switch next {
		case unix.IPPROTO_TCP:
			return b, hops
		case unix.IPPROTO_HOPOPTS, unix.IPPROTO_ROUTING, unix.IPPROTO_DSTOPTS:
			if len(b) < 8 || len(b) < 8+int(b[1])*8 {
				return nil, 0
			}
			next, b = b[0], b[8+int(b[1])*8:]
		default:
			return nil, 0
		}
	}
}

// options reads TCP options (RFC 9293 section 3.2, RFC 7323). It is false if one is cut off or has another length than its
// own.
func (s *syn) options(b []byte) bool {
	s.scale = -1
	for len(b) > 0 {
		kind := b[0]
		if kind == 0 { // the end of the list
			return true
		}
		if kind == 1 { // no operation
			b = b[1:]
			continue
		}
		if len(b) < 2 || int(b[1]) < 2 || int(b[1]) > len(b) {
			return false
		}
		data := b[2:b[1]]
		b = b[b[1]:]
		switch {
		case kind == 2 && len(data) == 2:
			s.mss = int32(binary.BigEndian.Uint16(data))
		case kind == 3 && len(data) == 1:
			s.scale = int8(min(data[0], 14)) // RFC 7323 section 2.3
		case kind == 8 && len(data) == 8:
			s.tsval = binary.BigEndian.Uint32(data)
		case kind == 2 || kind == 3 || kind == 8 || kind == 4 && len(data) != 0: // 4: SACK permitted
			return false
		}
	}
	return true
}
