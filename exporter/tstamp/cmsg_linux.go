package tstamp

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/instant"
)

// Control messages (cmsg(3)): a header of length, level and type, then the
// data, each part padded to the size of a word. The length counts the header.

const (
	word       = int(unsafe.Sizeof(uintptr(0)))
	cmsgHeader = (unix.SizeofCmsghdr + word - 1) &^ (word - 1)
)

func align(n int) int { return (n + word - 1) &^ (word - 1) }

// appendCmsg adds a header and room for n octets, which it returns zeroed or
// not: the caller fills them all. b must have the capacity.
func appendCmsg(b []byte, level, kind int32, n int) (all, data []byte) {
	start := len(b)
	b = b[:start+cmsgHeader+align(n)]
	if word == 8 {
		binary.NativeEndian.PutUint64(b[start:], uint64(cmsgHeader+n))
	} else {
		binary.NativeEndian.PutUint32(b[start:], uint32(cmsgHeader+n))
	}
	binary.NativeEndian.PutUint32(b[start+word:], uint32(level))
	binary.NativeEndian.PutUint32(b[start+word+4:], uint32(kind))
	return b, b[start+cmsgHeader : start+cmsgHeader+n]
}

func appendCmsgUint32(b []byte, level, kind int32, v uint32) []byte {
	b, data := appendCmsg(b, level, kind, 4)
	binary.NativeEndian.PutUint32(data, v)
	return b
}

// nextCmsg splits the first control message off; ok is false at the end or
// where the lengths make no sense.
func nextCmsg(b []byte) (level, kind int32, data, rest []byte, ok bool) {
	if len(b) < cmsgHeader {
		return 0, 0, nil, nil, false
	}
	var length uint64
	if word == 8 {
		length = binary.NativeEndian.Uint64(b)
	} else {
		length = uint64(binary.NativeEndian.Uint32(b))
	}
	if length < uint64(cmsgHeader) || length > uint64(len(b)) {
		return 0, 0, nil, nil, false
	}
	level = int32(binary.NativeEndian.Uint32(b[word:]))
	kind = int32(binary.NativeEndian.Uint32(b[word+4:]))
	data = b[cmsgHeader:length]
	return level, kind, data, b[min(align(int(length)), len(b)):], true
}

// The types of the control message that carries stamps are the numbers of the
// two options that ask for it.
const (
	scmTimestampingOld = unix.SO_TIMESTAMPING
	scmTimestampingNew = unix.SO_TIMESTAMPING_NEW
)

// parseTimestamping reads struct scm_timestamping: three timespecs, the
// software stamp, a relic, and the raw hardware stamp. The _NEW one has 64-bit
// fields everywhere, the old one those of a long.
func parseTimestamping(kind int32, data []byte) (software, hardware instant.Time) {
	field := 8
	if kind == scmTimestampingOld {
		field = word
	}
	if len(data) < 6*field {
		return 0, 0
	}
	at := func(i int) instant.Time {
		d := data[i*2*field:]
		if field == 8 {
			return instant.FromUnix(int64(binary.NativeEndian.Uint64(d)), int64(binary.NativeEndian.Uint64(d[8:])))
		}
		return instant.FromUnix(int64(int32(binary.NativeEndian.Uint32(d))), int64(int32(binary.NativeEndian.Uint32(d[4:]))))
	}
	return at(0), at(2)
}

// received is what the control messages of an incoming packet say.
type received struct {
	software, hardware instant.Time
	local              netip.Addr
	ttl, tos           uint8
	segment            int // what was coalesced had packets of so many octets; 0: it is one
}

func parseReceived(b []byte) (r received) {
	for {
		level, kind, data, rest, ok := nextCmsg(b)
		if !ok {
			return r
		}
		b = rest
		switch level {
		case unix.SOL_SOCKET:
			if kind == scmTimestampingNew || kind == scmTimestampingOld {
				r.software, r.hardware = parseTimestamping(kind, data)
			}
		case unix.SOL_IP:
			r.parseIP(kind, data)
		case unix.SOL_IPV6:
			r.parseIPv6(kind, data)
		case unix.SOL_UDP:
			if kind == unix.UDP_GRO && len(data) >= 4 {
				r.segment = int(int32(binary.NativeEndian.Uint32(data)))
			}
		}
	}
}

func (r *received) parseIP(kind int32, data []byte) {
	switch {
	case kind == unix.IP_TTL && len(data) >= 4:
		r.ttl = uint8(binary.NativeEndian.Uint32(data))
	case kind == unix.IP_TOS && len(data) >= 1:
		r.tos = data[0]
	case kind == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		// interface index, our address, the header's destination: the second is
		// one to answer from, even after a broadcast.
		r.local = netip.AddrFrom4([4]byte(data[4:8]))
	}
}

func (r *received) parseIPv6(kind int32, data []byte) {
	switch {
	case kind == unix.IPV6_HOPLIMIT && len(data) >= 4:
		r.ttl = uint8(binary.NativeEndian.Uint32(data))
	case kind == unix.IPV6_TCLASS && len(data) >= 4:
		r.tos = uint8(binary.NativeEndian.Uint32(data))
	case kind == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		r.local = netip.AddrFrom16([16]byte(data[:16]))
	}
}

// queued is one message of the error queue.
type queued struct {
	software, hardware instant.Time
	err                uint32 // ee_errno
	origin             uint8  // ee_origin
	info, data         uint32 // ee_info: kind of stamp; ee_data: its number
}

func parseQueued(b []byte) (q queued) {
	for {
		level, kind, data, rest, ok := nextCmsg(b)
		if !ok {
			return q
		}
		b = rest
		switch {
		case level == unix.SOL_SOCKET && (kind == scmTimestampingNew || kind == scmTimestampingOld):
			q.software, q.hardware = parseTimestamping(kind, data)
		case level == unix.SOL_IP && kind == unix.IP_RECVERR, level == unix.SOL_IPV6 && kind == unix.IPV6_RECVERR:
			if len(data) >= sizeofExtendedErr {
				q.err = binary.NativeEndian.Uint32(data)
				q.origin = data[4]
				q.info = binary.NativeEndian.Uint32(data[8:])
				q.data = binary.NativeEndian.Uint32(data[12:])
			}
		}
	}
}

// sizeofExtendedErr is that of struct sock_extended_err (linux/errqueue.h).
const sizeofExtendedErr = 16
