package reflector

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"
)

// answerSeconds is how long an answer may have stayed in a reflector, in
// seconds, to be recognised as one.
const answerSeconds = uint32(10 * time.Second / time.Second)

// Offsets of the time stamps of an answer, from RFC 8762 figures 5 and 6.
const (
	openT3, openT2     = 4, 16
	sealedT3, sealedT2 = 16, 32
)

// looksLikeAnswer reports whether b is another reflector's answer. Both formats
// have whole seconds in the upper half of a stamp (NTP and PTP alike), and T2
// and T3 of an answer are of one clock, so that no clock of ours is needed. In a
// question T2's place holds zeros or padding; random padding passes for a stamp
// of the right ten seconds once in 400 million packets.
func looksLikeAnswer(b []byte) bool {
	if looksAuthenticated(b) {
		return residence(b, sealedT2, sealedT3)
	}
	return residence(b, openT2, openT3)
}

func residence(b []byte, t2, t3 int) bool {
	in, out := binary.BigEndian.Uint32(b[t2:]), binary.BigEndian.Uint32(b[t3:])
	return in != 0 && out-in <= answerSeconds
}

// addressResult refuses addresses that cannot or must not be answered; Answered
// means that there is nothing against them.
func (s *shard) addressResult(peer netip.AddrPort, local netip.Addr) Result {
	a := peer.Addr()
	switch {
	case peer.Port() == 0, !a.IsValid(), a.IsUnspecified(), a.IsMulticast(), a == broadcast(),
		local.IsValid() && local.IsMulticast(), local == broadcast():
		return BadAddress
	case s.allow != nil && !s.allowed(a):
		return NotAllowed
	case slices.Contains(s.refusedPorts, peer.Port()):
		return Loop
	}
	return Answered
}

func broadcast() netip.Addr { return netip.AddrFrom4([4]byte{255, 255, 255, 255}) }

func (s *shard) allowed(a netip.Addr) bool {
	a = a.WithZone("")
	for _, p := range s.allow {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
