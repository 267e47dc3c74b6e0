package bottleneck

import (
	"math/rand/v2"
	"time"

	"oneway.example/exporter/instant"
)

// foreign is what the IDs of others' packets are above.
const foreign = 1 << 63

// othersBytes is their size.
const othersBytes = 1400

// others are the packets of somebody else, at exponential distances.
type others struct {
	rng  *rand.Rand
	mean float64 // ns
	due  instant.Time
	sent uint64
}

func newOthers(rate int64, seed uint64) *others {
	return &others{rng: rand.New(rand.NewPCG(seed, 11)), mean: othersBytes * 8e9 / float64(rate)}
}

// next is the next packet that comes until t. The first call begins.
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
