package main

import (
	"encoding/binary"
	"net/netip"
)

// classify picks the client's test packets and the answers to them for the
// link's log; the key is the packet's own number.
func classify(payload []byte, src, dst netip.AddrPort) (key uint64, ok bool) {
	if len(payload) < 44 || (src.Port() != reflectorPort && dst.Port() != reflectorPort) {
		return 0, false
	}
	return uint64(binary.BigEndian.Uint32(payload)), true
}
