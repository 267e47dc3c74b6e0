package ratesearch

import (
	"math/rand/v2"
	"time"
)

// simulation is a link with a tail-drop queue, as a fluid model.
type simulation struct {
	rate   float64 // IP bytes a second
	queue  float64 // bytes
	jitter time.Duration
	loss   float64
	// emptied: each step begins with an empty queue.
	emptied bool
	// host is the largest send rate; zero: no limit.
	host   float64
	waits  float64 // bytes in the queue
	sent   float64
	rng    *rand.Rand
	behind float64 // packets not yet sent, a fraction
}

const packet = 1500

// carry sends a step.
func (w *simulation) carry(s Step) Feedback {
	if w.emptied {
		w.waits = 0
	}
	rate, t := s.Rate, s.Duration.Seconds()
	if w.host > 0 {
		rate = min(rate, w.host)
	}
	w.sent += rate * t
	offered := rate * t
	before := w.waits
	w.waits = max(w.waits+offered-w.rate*t, 0)
	lost := max(w.waits-w.queue, 0)
	w.waits -= lost
	received := offered - lost - (w.waits - before)
	n := offered/packet + w.behind
	f := Feedback{Sent: rate, Packets: int(n)}
	w.behind = n - float64(f.Packets)
	f.Lost = int(lost/packet + w.rng.Float64())
	for i := f.Lost; w.loss > 0 && i < f.Packets; i++ {
		if w.rng.Float64() < w.loss {
			f.Lost++
			received -= packet
		}
	}
	if w.emptied {
		received, t = received+w.waits, t+w.waits/w.rate // the backlog still arrives
	}
	f.Received = max(received, 0) / t
	f.DelayVariation = time.Duration(max(w.waits, before) / w.rate * 1e9)
	if w.jitter > 0 {
		f.DelayVariation += time.Duration(w.rng.Int64N(int64(w.jitter)))
	}
	return f
}

// run runs a search to its end.
func (w *simulation) run(a Algorithm, seed uint64) (steps int) {
	w.rng = rand.New(rand.NewPCG(seed, 1))
	for {
		s, more := a.Next()
		if !more {
			return steps
		}
		a.Observe(w.carry(s))
		steps++
	}
}
