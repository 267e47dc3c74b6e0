package pps

import (
	"math"
	"time"
)

// farthest is the largest jump of the sequence that is believed: 1000 edges a second
// for a quarter of an hour. A line that carries noise makes thousands.
const farthest = 1 << 20

// counter follows the kernel's sequence.
type counter struct {
	started  bool
	sequence uint32
	// reopened: the device was opened since the last pulse; it may count anew.
	reopened bool
	// placed is the last pulse with a place on the raw clock; seen counts the
	// pulses after it.
	placed Pulse
	seen   uint64
}

// count takes a sequence number and tells how many pulses it stands for; ok is
// false if the sequence went back or jumped beyond belief, and counting starts
// anew. elapsed is the seconds since the last placed pulse; 0 if not known.
func (c *counter) count(sequence uint32, elapsed uint64) (pulses uint64, ok bool) {
	step := sequence - c.sequence // modulo 2^32, as the kernel counts
	fresh, reopened := !c.started, c.reopened
	c.started, c.reopened, c.sequence = true, false, sequence
	switch {
	case fresh, reopened && (step == 0 || uint64(step) > elapsed+1):
		step = 1 // the first of its count
	case step == 0 || step > farthest:
		return 0, false
	}
	c.seen += uint64(step)
	return uint64(step), true
}

// elapsed is the number of seconds from the last placed pulse to raw; 0 before the
// first.
func (c *counter) elapsed(raw time.Duration) uint64 {
	if c.placed.Assert.IsZero() || raw < c.placed.Raw {
		return 0
	}
	return uint64((raw - c.placed.Raw + time.Second/2) / time.Second)
}

// place notes the pulse and tells how many seconds since the last one had none: those
// that have passed, less the pulses that were counted meanwhile, seen or slept
// through. An edge that bounced while another was missing hides that one.
func (c *counter) place(p Pulse) (missed uint64) {
	if elapsed := c.elapsed(p.Raw); elapsed > c.seen {
		missed = elapsed - c.seen
	}
	c.placed, c.seen = p, 0
	return missed
}

const (
	jitterOver = 64
	jitterFrom = 8
)

// jitter is the standard deviation of the last intervals between pulses.
type jitter struct {
	intervals [jitterOver]float64 // beyond one second, in ns
	n, next   int
}

// add takes the interval between two pulses that follow each other. One that is no
// second at all is no jitter, but a pulse too many.
func (j *jitter) add(interval time.Duration) {
	if interval < time.Second/2 || interval > time.Second*3/2 {
		return
	}
	j.intervals[j.next] = float64(interval - time.Second)
	j.next = (j.next + 1) % jitterOver
	j.n = min(j.n+1, jitterOver)
}

// deviation is the standard deviation; ok is false before eight intervals.
func (j *jitter) deviation() (d time.Duration, ok bool) {
	if j.n < jitterFrom {
		return 0, false
	}
	var mean, squares float64
	for _, v := range j.intervals[:j.n] {
		mean += v / float64(j.n)
	}
	for _, v := range j.intervals[:j.n] {
		squares += (v - mean) * (v - mean)
	}
	return time.Duration(math.Round(math.Sqrt(squares / float64(j.n-1)))), true
}
