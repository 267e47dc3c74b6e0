package stamp

import (
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
)

// hops is the number of routers on the path of one direction.
type hops struct {
	last    maybe[uint8]
	changes uint64
}

// arrived adds one packet's TTL or hop limit at the sender and at the receiver; 0: unknown.
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

// countHops adds the hops of a reply. Our reflector sends with TTL 255 (RFC 5357 section 4.2.1).
func (a *account) countHops(in *tstamp.In, r *reply) {
	a.hops[sample.Forward].arrived(a.opts.TTL, r.packet.SenderTTL)
	left := uint8(255)
	if a.kind != remoteOurs {
		left = usualTTL(in.TTL)
	}
	a.hops[sample.Reverse].arrived(left, in.TTL)
}

// usualTTL returns the smallest common initial TTL that is not below the received one.
func usualTTL(arrived uint8) uint8 {
	switch {
	case arrived <= 64:
		return 64
	case arrived <= 128:
		return 128
	}
	return 255
}
