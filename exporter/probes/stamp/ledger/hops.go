package ledger

import (
	"math"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
)

// Hops is the number of routers on the path of one direction.
type Hops struct {
	// Last is the number of the last packet for which it is known; Changes counts its changes.
	Last    Optional[uint8]
	Changes uint64
}

// arrived adds one packet's TTL or hop limit at the sender and at the receiver; 0: unknown.
func (h *Hops) arrived(left, arrived uint8) {
	if arrived == 0 || arrived > left {
		return
	}
	passed := left - arrived
	if h.Last.Known && h.Last.Value != passed {
		h.Changes++
	}
	h.Last = Optional[uint8]{passed, true}
}

// countHops adds the hops of a reply. Our reflector sends with TTL 255 (RFC 5357 section 4.2.1).
func (a *Account) countHops(in *tstamp.In, r *Reply) {
	a.Hops[sample.Forward].arrived(a.opts.TTL, r.Packet.SenderTTL)
	left := uint8(255)
	if a.Kind != RemoteOurs {
		left = usualTTL(in.TTL)
	}
	a.Hops[sample.Reverse].arrived(left, in.TTL)
}

// usualTTLs are the common initial TTLs below the largest one.
func usualTTLs() [2]uint8 { return [2]uint8{64, 128} }

// usualTTL returns the smallest common initial TTL that is not below the received one.
func usualTTL(arrived uint8) uint8 {
	for _, one := range usualTTLs() {
		if arrived <= one {
			return one
		}
	}
	return math.MaxUint8
}
