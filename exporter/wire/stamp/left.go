package stamp

import (
	"math"
	"math/bits"
	"time"
)

// Left is when an earlier answer really left the far end. The zero value: it is
// not known.
type Left struct {
	// Known: the far end's kernel or card has stamped the answer.
	Known bool
	// After is how much later than the T3 in the answer itself that was. On the wire
	// it is in nanoseconds, at most MaxLeftAfter; what does not fit is not known.
	After time.Duration
	// Held is how much later still it may have been (sample.Stamp). It is written
	// rounded up by at most a sixteenth or a microsecond.
	Held time.Duration
}

// MaxLeftAfter is the longest Left.After that can be told.
const MaxLeftAfter = math.MaxUint32 - 1

// LeftAnswers is how many earlier answers a Receipt tells of.
const LeftAnswers = 3

// appendLeft writes 32 bits for each: nanoseconds and one, 0 for not known; then
// ten bits for each Held, from the highest: a power of two (5 bits) times a
// number of microseconds (5 bits).
func appendLeft(b []byte, all [LeftAnswers]Left) []byte {
	held := uint32(0)
	for _, l := range all {
		after, code := uint32(0), uint32(0)
		if l.Known && l.After >= 0 && l.After <= MaxLeftAfter {
			after, code = uint32(l.After)+1, heldCode(l.Held)
		}
		b = be.AppendUint32(b, after)
		held = held<<10 | code
	}
	return be.AppendUint32(b, held<<2)
}

func parseLeft(v []byte) (all [LeftAnswers]Left) {
	held := be.Uint32(v[4*LeftAnswers:])
	for i := range all {
		if after := be.Uint32(v[4*i:]); after != 0 {
			all[i] = Left{Known: true, After: time.Duration(after - 1), Held: heldTime(held >> (22 - 10*i) & 0x3ff)}
		}
	}
	return all
}

func heldCode(d time.Duration) uint32 {
	us := uint64((max(d, 0) + time.Microsecond - 1) / time.Microsecond)
	power := max(0, bits.Len64(us)-5)
	us = (us + 1<<power - 1) >> power
	if us == 32 { // rounded up beyond five bits
		us, power = 16, power+1
	}
	if power > 31 {
		return 0x3ff
	}
	return uint32(power)<<5 | uint32(us)
}

func heldTime(code uint32) time.Duration {
	return time.Duration(uint64(code&31)<<(code>>5)) * time.Microsecond
}
