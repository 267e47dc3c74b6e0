package stamp

import (
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// answerSlots is how many answers wait for their true T3. The far end tells it
// in the next answer (Follow-Up Telemetry) and again in the two after that
// (Receipt), so that only three answers lost in a row lose a stamp.
const answerSlots = 8

// answer is one received answer whose T3 may still become more exact.
type answer struct {
	packet  sample.Packet
	arrived time.Duration // monotonic
	steps   uint64        // clock steps when its question was sent
	shared  bool          // both ends read one clock
	waiting bool
}

// answers holds those that wait, by reverse number.
type answers struct {
	ring [answerSlots]answer
	next uint64 // highest reverse number seen + 1
}

func (a *answers) at(reverseSeq uint64) *answer { return &a.ring[reverseSeq%answerSlots] }

// settle gives the answer numbered reverseSeq its true T3 and hands it to done.
func (a *answers) settle(reverseSeq uint64, t3 instant.Time, done func(*answer)) {
	w := a.at(reverseSeq)
	if t3.IsZero() || !w.waiting || w.packet.ReverseSeq != reverseSeq {
		return
	}
	w.packet.T3 = sample.Stamp{At: t3, Origin: sample.FollowUp}
	w.waiting = false
	done(w)
}

// put keeps a new answer; the one that held its place, and those too old for
// the far end to tell of, are handed to done as they are.
func (a *answers) put(w answer, done func(*answer)) {
	slot := a.at(w.packet.ReverseSeq)
	if slot.waiting {
		slot.waiting = false
		done(slot)
	}
	*slot = w
	slot.waiting = true
	a.next = max(a.next, w.packet.ReverseSeq+1)
	for i := range a.ring {
		if old := &a.ring[i]; old.waiting && old.packet.ReverseSeq+4 < a.next {
			old.waiting = false
			done(old)
		}
	}
}

// flush hands all that arrived before the given time to done, oldest first.
func (a *answers) flush(before time.Duration, done func(*answer)) {
	start := a.next - min(a.next, answerSlots)
	for seq := start; seq < a.next; seq++ {
		if w := a.at(seq); w.waiting && w.arrived < before {
			w.waiting = false
			done(w)
		}
	}
}
