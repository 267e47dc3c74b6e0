// Package seqwin is a receiver's window over sequence numbers: it decides of
// every number whether it was received, lost, duplicated, late or reordered,
// in whole numbers that always add up.
//
// Both ends of a session use it: the reflector over the sender's numbers, the
// sender over the reflector's. A number is in one of three states:
//
//	... decided ...| base ... undecided ... next |... not seen yet
//
//	Next - First = Received + Lost + Pending   (always, exactly)
//
// A missing number becomes Lost when the waiting time (Tmax, RFC 7680 section
// 2.4) has passed since a higher number arrived, or when Size higher numbers
// have been seen. A first copy that comes after that is Late: it never takes
// the loss back. A further copy is Duplicated (RFC 5560) and takes nothing back
// either. Reordered is RFC 4737 section 3.3: a unique packet whose number is
// less than next; lost and late packets are not reordered.
package seqwin

import (
	"math/bits"
	"time"
)

// Size is how many numbers below the highest seen are remembered. It bounds the
// memory of a session (2.2 KiB) and the longest reordering extent that is told
// from loss.
const Size = 512

// RecentWords is the length of Counts.Recent in 64-bit words.
const RecentWords = 4

// maxNumber keeps all sums of numbers clear of the end of uint64.
const maxNumber = 1<<63 - 1

// RecentBits is how many of the last decided numbers Counts.Recent tells of.
const RecentBits = RecentWords * 64

// Verdict is what one arrival was.
type Verdict uint8

// The verdicts.
const (
	// Unique: the first copy, in time.
	Unique Verdict = iota
	// Reordered: the first copy, in time, but after a higher number.
	Reordered
	// Duplicate: a further copy.
	Duplicate
	// Late: the number had already been decided as lost.
	Late
)

// Counts is the state of a window. All numbers only grow.
type Counts struct {
	// First is the first number that was expected.
	First uint64
	// Base: every number below it is decided.
	Base uint64
	// Next is the highest number seen (or told by Finish) plus one.
	Next uint64
	// Received counts unique packets in time, those at or above Base included.
	Received uint64
	// Lost counts numbers below Base that did not come in time.
	Lost uint64
	// Duplicated, Reordered and Late count arrivals.
	Duplicated, Reordered, Late uint64
	// Bursts counts maximal runs of consecutive lost numbers.
	Bursts uint64
	// Recent tells the fate of the numbers below Base: bit i%64 of word i/64
	// is set if number Base-1-i was received in time.
	Recent [RecentWords]uint64
}

// Window is one receiver's state. The zero value expects number 0 first.
type Window struct {
	counts Counts
	// seen: bit n%Size is set if number n arrived in any way, for n in [next-Size, next).
	seen [Size / 64]uint64
	// openedMs[n%Size] is when a missing number was first overtaken, in
	// milliseconds of the caller's monotonic clock.
	openedMs [Size]uint32
	inBurst  bool
}

// Start makes n the first number expected. It must be called before the first
// Add. What comes below it was not meant for this window and counts as late (or
// duplicate), never as received.
func (w *Window) Start(n uint64) { w.counts.First, w.counts.Base, w.counts.Next = n, n, n }

// Counts returns the present state.
func (w *Window) Counts() Counts { return w.counts }

// Pending is how many numbers below Next are neither received nor lost yet.
func (c *Counts) Pending() uint64 { return c.Next - c.First - c.Received - c.Lost }

// Add takes the arrival of number n at the monotonic time now. It allocates
// nothing; its cost is constant but for a jump ahead, at most Size small steps.
// Numbers from 2^63, where no session gets, count as late.
func (w *Window) Add(n uint64, now time.Duration) Verdict {
	c := &w.counts
	switch {
	case n > maxNumber:
		c.Late++
		return Late
	case n >= c.Next:
		w.advance(n, now)
		w.mark(n)
		c.Received++
		w.slide()
		return Unique
	case n+Size < c.Next || (n < c.Base && !w.has(n)):
		// Older than all memory counts as late, each copy: it was certainly decided.
		if n+Size >= c.Next {
			w.mark(n)
		}
		c.Late++
		return Late
	case w.has(n):
		c.Duplicated++
		return Duplicate
	}
	w.mark(n)
	c.Received++
	c.Reordered++
	w.slide()
	return Reordered
}

// Expire decides the numbers that have been missing for longer than wait, at
// most 24 days, never early and at most 2 ms late. A now before the time of an
// Add (two goroutines that read the clock and then race for the window) expires
// nothing.
func (w *Window) Expire(now, wait time.Duration) {
	c := &w.counts
	limit := (wait + time.Millisecond - 1).Milliseconds()
	for c.Base < c.Next {
		if !w.has(c.Base) {
			// Signed, so that a small step back is not an age of 49 days.
			age := int32(toMs(now) - w.openedMs[c.Base%Size])
			if int64(age) <= limit {
				return
			}
		}
		w.settle(1, w.has(c.Base))
	}
}

// Finish decides every number below next at once: the sender has said that it
// sent so many, and has waited. Next moves up to it although the last numbers
// may never have been seen.
func (w *Window) Finish(next uint64, now time.Duration) {
	next = min(next, maxNumber)
	if next > w.counts.Next {
		w.advance(next-1, now)
	}
	w.decideTo(min(next, w.counts.Next))
	w.slide()
}

// advance moves next to n+1, noting when the skipped numbers were overtaken.
func (w *Window) advance(n uint64, now time.Duration) {
	c := &w.counts
	if floor := n + 1 - min(n+1, Size); floor > c.Base {
		// What falls out of the window is decided, and what never enters it (the
		// gap of an outage) must not cost a step for every number.
		w.decideTo(min(floor, c.Next))
		if floor > c.Next {
			w.settle(floor-c.Next, false)
			c.Next = floor
		}
	}
	opened := toMs(now)
	for ; c.Next <= n; c.Next++ {
		w.unmark(c.Next)
		w.openedMs[c.Next%Size] = opened
	}
}

// slide moves base over the numbers that have been received.
func (w *Window) slide() {
	for w.counts.Base < w.counts.Next && w.has(w.counts.Base) {
		w.settle(1, true)
	}
}

// decideTo settles the numbers from base to below end, run by run; end must not
// be above next.
func (w *Window) decideTo(end uint64) {
	c := &w.counts
	for c.Base < end {
		word := w.seen[c.Base%Size/64] >> (c.Base % 64)
		received := word&1 != 0
		if received {
			word = ^word
		}
		run := min(uint64(bits.TrailingZeros64(word)), 64-c.Base%64, end-c.Base)
		w.settle(run, received)
	}
}

// settle decides the run > 0 numbers from base on, which share one fate.
func (w *Window) settle(run uint64, received bool) {
	c := &w.counts
	if !received {
		c.Lost += run
		if !w.inBurst {
			c.Bursts++
		}
	}
	w.inBurst = !received
	c.Base += run
	var fill uint64
	if received {
		fill = ^fill
	}
	for run >= 64 {
		c.Recent = [RecentWords]uint64{fill, c.Recent[0], c.Recent[1], c.Recent[2]}
		run = min(run-64, 64*RecentWords)
	}
	for i := RecentWords - 1; i > 0; i-- {
		c.Recent[i] = c.Recent[i]<<run | c.Recent[i-1]>>(64-run)
	}
	c.Recent[0] = c.Recent[0]<<run | fill>>(64-run)
}

func (w *Window) has(n uint64) bool { return w.seen[n%Size/64]&(1<<(n%64)) != 0 }
func (w *Window) mark(n uint64)     { w.seen[n%Size/64] |= 1 << (n % 64) }
func (w *Window) unmark(n uint64)   { w.seen[n%Size/64] &^= 1 << (n % 64) }

func toMs(d time.Duration) uint32 { return uint32(d.Milliseconds()) }

// LostIn counts the lost among the newest k decided numbers, as far back as
// Recent tells.
func (c *Counts) LostIn(k int) int {
	k = min(max(k, 0), RecentBits, int(min(c.Base-c.First, RecentBits)))
	received := 0
	for i := range RecentWords {
		word := c.Recent[i]
		if rest := k - 64*i; rest < 64 {
			if rest <= 0 {
				break
			}
			word &= 1<<rest - 1
		}
		received += bits.OnesCount64(word)
	}
	return k - received
}

// Extend widens a 32-bit number from the wire to the 64-bit number nearest to
// the one last seen, so that a session outlives 2^32 packets.
func Extend(last uint64, wire uint32) uint64 {
	n := last&^(1<<32-1) | uint64(wire)
	switch diff := int64(n - last); {
	case diff > 1<<31 && n >= 1<<32:
		n -= 1 << 32
	case diff < -(1 << 31):
		n += 1 << 32
	}
	return n
}
