package stamp

import (
	"oneway.example/exporter/sample"
	"oneway.example/exporter/tstamp"
)

// hops is how many routers the packets of one direction pass.
type hops struct {
	last    maybe[uint8]
	changes uint64
}

// arrived takes the TTL or hop limit that a packet left with, and the one that it arrived with; 0: that is not
// known.
func (h *hops) arrived(left, arrived uint8) {
	if arrived == 0 || arrived > left {
		return
	}
	passed := left - arrived
	if h.last.known && h.last.value != passed {
		h.changes++
	}
	h.last = maybe[uint8]{passed, true}
}

// countHops takes a reply's. Our reflector sends with 255 (RFC 5357 section 4.2.1).
func (a *account) countHops(in *tstamp.In, r *reply) {
	a.hops[sample.Forward].arrived(uint8(a.opts.TTL), r.packet.SenderTTL)
	left := uint8(255)
	if a.kind != remoteOurs {
		left = usualTTL(in.TTL)
	}
	a.hops[sample.Reverse].arrived(left, in.TTL)
}

// usualTTL is the least that systems send with, of those that a packet which arrives with this one can have had.
func usualTTL(arrived uint8) uint8 {
	switch {
	case arrived <= 64:
		return 64
	case arrived <= 128:
		return 128
	}
	return 255
}
