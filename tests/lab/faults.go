package lab

import (
	"math"
	"math/rand/v2"
	"time"
)

// Faults are the faults of one packet on the link, except for a full queue.
type Faults struct {
	// Lose: it leaves the queue and never arrives.
	Lose bool
	// Duplicate: a copy follows it.
	Duplicate bool
	// Corrupt: one byte of its UDP payload is changed.
	Corrupt bool
	// HoldBehind is the number of later packets that overtake it; 0: none.
	HoldBehind int
	// Mark: it gets the mark CE, if its transport is ECN-capable.
	Mark bool
}

// draw has all random values of one packet.
type draw struct {
	Faults
	jitter time.Duration
	// retransmissions is the number of repetitions after the queue.
	retransmissions int
	// position and mask define the change of Corrupt in the payload.
	position uint64
	mask     uint8
}

// dice draws the faults of one class of packets in one direction. Every packet
// takes the same number of random values for any outcome, so that the
// n-th packet's outcome depends on the seed and on n, not on timing.
type dice struct {
	random *rand.Rand
	// inBurst is the state of the Gilbert loss model.
	inBurst bool
}

// newDice seeds a separate stream for each direction and class.
func newDice(seed, stream uint64) *dice {
	return &dice{random: rand.New(rand.NewPCG(seed, stream))}
}

func (d *dice) roll(l *Link) draw {
	loss, duplicate, hold, corrupt := d.random.Float64(), d.random.Float64(), d.random.Float64(), d.random.Float64()
	behind := 1 + int(d.random.Uint64()%3)
	jitter := d.random.Float64()
	position, mask := d.random.Uint64(), d.random.Uint64()
	again := d.random.Float64()

	out := draw{jitter: time.Duration(jitter * float64(l.Jitter)), position: position, mask: uint8(1 + mask%255)}
	out.Lose = d.lose(l, loss)
	out.Duplicate = duplicate < l.Duplicate
	out.Corrupt = corrupt < l.Corrupt
	if l.Retransmit > 0 {
		// geometric: each time with that probability
		out.retransmissions = int(math.Log(1-again) / math.Log(l.Retransmit))
	}
	out.Mark = float64(position>>11)/(1<<53) < l.Mark // of the same value: a new one would change all seeds' outcomes
	if hold < l.Reorder {
		out.HoldBehind = behind
	}
	return out
}

// lose is a Bernoulli trial, or one step of a two-state Gilbert model in which
// every packet of the bad state is lost: the bad state is left with probability
// 1/LossBurst, and entered so that the overall ratio is Loss.
func (d *dice) lose(l *Link, random float64) bool {
	switch {
	case l.LossBurst == 0 || l.Loss == 0 || l.Loss == 1:
		d.inBurst = random < l.Loss
	case d.inBurst:
		d.inBurst = random >= 1/l.LossBurst
	default:
		d.inBurst = random < l.Loss/(l.LossBurst*(1-l.Loss))
	}
	return d.inBurst
}
