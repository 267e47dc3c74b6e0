package bottleneck

import (
	"math/rand/v2"
	"time"

	"oneway.example/exporter/core/instant"
)

// foreign is the lower limit of the IDs of cross traffic.
const foreign = 1 << 63

// othersBytes is the packet size of cross traffic.
const othersBytes = 1400

// others is the cross traffic, with exponential gaps.
type others struct {
	rng  *rand.Rand
	mean float64 // ns
	due  instant.Time
	sent uint64
}

func newOthers(rate int64, seed uint64) *others {
	return &others{rng: rand.New(rand.NewPCG(seed, 11)), mean: othersBytes * 8e9 / float64(rate)}
}

// next is the next packet until t. The first call starts the traffic.
func (o *others) next(t instant.Time) (Packet, bool) {
	if o.due == 0 {
		o.due = t
	}
	if o.due > t {
		return Packet{}, false
	}
	o.sent++
	p := Packet{ID: foreign + o.sent, Flow: ^uint32(0), Size: othersBytes, Entry: o.due}
	o.due = o.due.Add(time.Duration(o.rng.ExpFloat64() * o.mean))
	return p, true
}
