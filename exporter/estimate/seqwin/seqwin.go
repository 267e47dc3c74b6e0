// Package seqwin is a receiver's window over sequence numbers: it decides of every number whether it was received,
// lost, duplicated, late or reordered, in integer counts that are always consistent. Both ends of a session use it:
// the reflector for the sender's numbers, the sender for the reflector's. A number is in one of three states:
//
//	... decided ...| base ... undecided ... next |... not received yet
//
//	Next - First = Received + Lost + Pending   (always, exactly)
//
// A missing number becomes Lost when the waiting time (Tmax, RFC 7680 section 2.4) has passed since a higher number
// arrived, or when so many higher numbers were received that the window has no space for it; the window grows to
// MaxSize with the received packets. A first copy that arrives later is Late and does not revoke the loss. So is a
// packet whose own delay exceeded the waiting time by other means (AddOverdue). A further copy is Duplicated (RFC
// 5560) and revokes no loss either. Reordered is RFC 4737 section 3.3: a unique packet whose number is less than
// next; lost and late packets are not reordered.
package seqwin

import (
	"math/bits"
	"time"
)

// Size is how many numbers below the highest one received are remembered initially, in 128 bytes, and 8 for each run of
// missing numbers that are not decided. If numbers would be decided for lack of space, the window is doubled, up to MaxSize, as long as at least
// one in sparsest of its numbers was received and its Quota allows: memory grows with received packets, not with a
// number that jumps ahead.
const (
	Size     = 512
	MaxSize  = 1 << 17
	sparsest = 16

	// RecentWords is the length of Counts.Recent in 64-bit words.
	RecentWords = 4
	// RecentBits is how many of the last decided numbers it covers.
	RecentBits = RecentWords * 64
	// maxNumber prevents overflow of sums of numbers.
	maxNumber = 1<<63 - 1
)

// DefaultWait is the waiting time after which a number is lost: of a sender by default, and of a reflector whose sender does not tell its
// own.
const DefaultWait = 3 * time.Second

// Verdict is the classification of one arrival.
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

// Counts is the state of a window. No value decreases.
type Counts struct {
	// First is the first number that was expected.
	First uint64
	// Base: every number below it is decided.
	Base uint64
	// Next is the highest number received (or set by Finish) plus one.
	Next uint64
	// Received counts unique packets in time, including those at or above Base.
	Received uint64
	// Lost counts numbers below Base that did not arrive in time.
	Lost uint64
	// Duplicated, Reordered and Late count arrivals.
	Duplicated, Reordered, Late uint64
	// Bursts counts maximal runs of consecutive lost numbers.
	Bursts uint64
	// Recent is the outcome of the numbers below Base: bit i%64 of word i/64 is set if number Base-1-i was received
	// in time.
	Recent [RecentWords]uint64
}

// Window is the state of one receiver. The zero value expects number 0 first. It must not be copied after its first
// use.
type Window struct {
	counts Counts
	// seen: bit n%size is set if number n arrived in any way, for n in [next-size, next), size being 64 times its
	// length, a power of two; overdue: if it arrived too late.
	seen, overdue []uint64
	gaps          gaps   // all undecided missing numbers are in one
	mask          uint64 // size-1
	inBurst       bool
	quota         *Quota // charged for the growth; nil: none
}

// Reset returns to the zero value, also without the quota, but keeps the memory of a window that has not grown.
func (w *Window) Reset() {
	w.Charge(nil)
	old := *w
	*w = Window{}
	if old.length() == Size {
		clear(old.seen)
		clear(old.overdue)
		w.seen, w.overdue, w.gaps.ring, w.mask = old.seen, old.overdue, old.gaps.ring, old.mask
	}
}

// Reserve makes space for n numbers, at most MaxSize, for a caller with a known rate.
func (w *Window) Reserve(n int) {
	size := Size
	for size < min(n, MaxSize) {
		size *= 2
	}
	if size > w.length() {
		w.resize(size)
	}
}

// resize moves the state to tables of another size.
func (w *Window) resize(size int) {
	old := *w
	w.seen, w.overdue = make([]uint64, size/64), make([]uint64, size/64)
	w.mask = uint64(size) - 1
	for n := w.counts.Next - min(w.counts.Next, uint64(old.length())); n < w.counts.Next; n++ {
		if old.has(n) {
			w.mark(n)
		}
		if old.late(n) {
			w.markOverdue(n)
		}
	}
}

// length is how many numbers the window has tables for; 0 before its first use.
func (w *Window) length() int { return 64 * len(w.seen) }

// size is the number of remembered numbers; the tables are allocated at the first use.
func (w *Window) size() uint64 {
	if len(w.seen) == 0 {
		w.resize(Size)
	}
	return uint64(w.length())
}

// grow doubles the window while number n would push undecided numbers out of it, and enough of its numbers were
// received.
func (w *Window) grow(n uint64) {
	for size := w.size(); n+1 > size && n+1-size > w.counts.Base && size < MaxSize; size *= 2 {
		received := 0
		for _, word := range w.seen {
			received += bits.OnesCount64(word)
		}
		if uint64(received)*sparsest < size {
			return
		}
		if more := tableBytes(int(2*size)) - tableBytes(int(size)); !w.quota.take(more) {
			return
		}
		w.resize(int(2 * size))
	}
}

// Start makes n the first number expected. It must be called before the first Add. Numbers below it are not of this
// window and count as late (or duplicate), never as received.
func (w *Window) Start(n uint64) { w.counts.First, w.counts.Base, w.counts.Next = n, n, n }

// Counts returns the current state.
func (w *Window) Counts() Counts { return w.counts }

// Pending is how many numbers below Next are neither received nor lost.
func (c *Counts) Pending() uint64 { return c.Next - c.First - c.Received - c.Lost }

// Seen reports whether number n has arrived, in time or not, as far back as the window reaches.
func (w *Window) Seen(n uint64) bool {
	return n < w.counts.Next && n+uint64(w.length()) >= w.counts.Next && w.has(n)
}

// EachReceived calls yield with the remembered numbers that were received in time.
func (w *Window) EachReceived(yield func(n uint64)) {
	for n := w.counts.Next - min(w.counts.Next, uint64(w.length())); n < w.counts.Next; n++ {
		if w.received(n) {
			yield(n)
		}
	}
}

// IsMissing reports whether number n has certainly not arrived: a number below the first one, or older than the
// window, may have.
func (w *Window) IsMissing(n uint64) bool {
	c := &w.counts
	return n >= c.Next || n >= c.First && n+uint64(w.length()) >= c.Next && !w.has(n)
}

// Add adds the arrival of number n at the monotonic time now. Its cost is constant except for a jump ahead, which
// takes at most as many small steps as the window has numbers. It allocates when the window grows. Numbers from
// 2^63 on, which no session reaches, count as late.
func (w *Window) Add(n uint64, now time.Duration) Verdict { return w.add(n, now, false) }

// AddOverdue adds the arrival of a packet whose own delay exceeded the waiting time: it is Late, and lost, even if
// no higher number arrived before it.
func (w *Window) AddOverdue(n uint64, now time.Duration) Verdict { return w.add(n, now, true) }

func (w *Window) add(n uint64, now time.Duration, overdue bool) Verdict {
	c, size := &w.counts, w.size()
	verdict := Reordered
	switch {
	case n > maxNumber:
		c.Late++
		return Late
	case n >= c.Next:
		w.grow(n)
		w.advance(n, now)
		verdict = Unique
	case n+size < c.Next || (n < c.Base && !w.has(n)):
		// A number older than the window counts as late, each copy: it was certainly decided.
		if n+size >= c.Next {
			w.mark(n)
		}
		c.Late++
		return Late
	case w.has(n):
		c.Duplicated++
		return Duplicate
	}
	w.mark(n)
	switch {
	case overdue:
		verdict = Late
		w.markOverdue(n)
		c.Late++
	case verdict == Reordered:
		c.Reordered++
		fallthrough
	default:
		c.Received++
	}
	w.slide()
	return verdict
}

// Expire decides the numbers that have been missing for longer than wait, at most 24 days, never early and at most
// 2 ms late. A now before the time of an Add (two goroutines that read the clock and then compete for the window)
// expires nothing.
func (w *Window) Expire(now, wait time.Duration) {
	c := &w.counts
	limit := (wait + time.Millisecond - 1).Milliseconds()
	for c.Base < c.Next {
		if !w.has(c.Base) {
			// Signed, so that a small step back is not interpreted as 49 days.
			age := int32(toMs(now) - w.gaps.of(c.Base).openedMs)
			if int64(age) <= limit {
				return
			}
		}
		w.settle(1, w.received(c.Base))
	}
}

// Finish decides every number below next at once: the sender reported that it sent so many, and has waited. Next
// increases to it although the last numbers may never have arrived.
func (w *Window) Finish(next uint64, now time.Duration) {
	next = min(next, maxNumber)
	if next > w.counts.Next {
		w.grow(next - 1)
		w.advance(next-1, now)
	}
	w.decideTo(min(next, w.counts.Next))
	w.slide()
}

// advance moves next to n+1, recording when the skipped numbers were overtaken.
func (w *Window) advance(n uint64, now time.Duration) {
	c, size := &w.counts, w.size()
	if floor := n + 1 - min(n+1, size); floor > c.Base {
		// Numbers that leave the window are decided, and numbers that never enter it (the gap of an outage) must
		// not cost a step each.
		w.decideTo(min(floor, c.Next))
		w.slide()
		if floor > c.Next {
			w.settle(floor-c.Next, false)
			c.Next = floor
		}
	}
	if c.Next < n {
		if c.Base == c.Next {
			w.gaps.clear()
		}
		w.gaps.push(gap{uint32(c.Next), toMs(now)}, c.Base)
	}
	for ; c.Next < n; c.Next++ {
		w.unmark(c.Next)
	}
	w.unmark(n)
	c.Next = n + 1
}

// slide moves base over the numbers that have arrived.
func (w *Window) slide() {
	for w.counts.Base < w.counts.Next && w.has(w.counts.Base) {
		w.settle(1, w.received(w.counts.Base))
	}
}

// decideTo settles the numbers from base to below end, by runs; end must not be above next.
func (w *Window) decideTo(end uint64) {
	c := &w.counts
	for c.Base < end {
		at := c.Base & w.mask >> 6
		word := (w.seen[at] &^ w.overdue[at]) >> (c.Base % 64)
		received := word&1 != 0
		if received {
			word = ^word
		}
		run := min(uint64(bits.TrailingZeros64(word)), 64-c.Base%64, end-c.Base)
		w.settle(run, received)
	}
}

// settle decides the run > 0 numbers from base on, which have the same outcome.
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

func (w *Window) has(n uint64) bool {
	return w.seen[n&w.mask>>6]&(1<<(n%64)) != 0
}

func (w *Window) late(n uint64) bool {
	return w.overdue[n&w.mask>>6]&(1<<(n%64)) != 0
}

// received reports that n arrived, and in time.
func (w *Window) received(n uint64) bool { return w.has(n) && !w.late(n) }

func (w *Window) mark(n uint64)        { w.seen[n&w.mask>>6] |= 1 << (n % 64) }
func (w *Window) markOverdue(n uint64) { w.overdue[n&w.mask>>6] |= 1 << (n % 64) }

func (w *Window) unmark(n uint64) {
	at := n & w.mask >> 6
	w.seen[at] &^= 1 << (n % 64)
	w.overdue[at] &^= 1 << (n % 64)
}

func toMs(d time.Duration) uint32 { return uint32(d.Milliseconds()) }

// Extend widens a 32-bit number from the wire to the 64-bit number nearest to the last one, so that sessions may
// exceed 2^32 packets.
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
