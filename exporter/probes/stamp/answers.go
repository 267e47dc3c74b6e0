package stamp

import (
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	wire "oneway.example/exporter/wire/stamp"
)

// answerSlots is how many answers wait for their true T3. A far end tells it in
// the next answer (Follow-Up Telemetry), ours also in the two after that
// (Receipt), so that only three answers lost in a row lose a stamp.
const answerSlots = 8

// answer is one received answer whose T3 may still become more exact.
type answer struct {
	packet  sample.Packet
	arrived time.Duration // monotonic
	clock   clockThen     // this host's, when its question was sent and when it came
	shared  bool          // both ends read one clock
	era     uint64        // of the clocks, when it came
	lost    [2]bool       // by direction: it took longer than the waiting time
	expired bool          // the round trip did
	seen    bool          // false: an empty place
	waiting bool
}

// answers holds those that wait, by reverse number.
type answers struct {
	ring [answerSlots]answer
	next uint64 // highest reverse number seen + 1
	// early is what was told of an answer that others have overtaken.
	early [answerSlots]told
}

// told is what the far end says of one answer: a true T3, or how much later than
// the one in the answer it was.
type told struct {
	number uint64 // the answer's, + 1; 0: nothing
	t3     instant.Time
	left   wire.Left
}

func (a *answers) at(reverseSeq uint64) *answer { return &a.ring[reverseSeq%answerSlots] }

// settle gives the answer numbered reverseSeq its true T3 and hands it to done.
func (a *answers) settle(reverseSeq uint64, t3 instant.Time, done func(*answer)) {
	if !t3.IsZero() {
		a.tell(told{number: reverseSeq + 1, t3: t3}, done)
	}
}

// left does so for what our reflector tells.
func (a *answers) left(reverseSeq uint64, l wire.Left, done func(*answer)) {
	if l.Known {
		a.tell(told{number: reverseSeq + 1, left: l}, done)
	}
}

func (a *answers) tell(t told, done func(*answer)) {
	w := a.at(t.number - 1)
	if w.packet.ReverseSeq != t.number-1 || !w.seen {
		a.early[(t.number-1)%answerSlots] = t
		return
	}
	if w.waiting {
		w.settle(t, done)
	}
}

func (w *answer) settle(t told, done func(*answer)) {
	t3 := &w.packet.T3
	switch {
	case !t.left.Known:
		*t3 = sample.Stamp{At: t.t3, Origin: sample.FollowUp}
	case t3.Present():
		*t3 = sample.Stamp{At: t3.At.Add(t.left.After), Origin: sample.FollowUp, Held: t.left.Held}
	}
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
	slot.seen, slot.waiting = true, true
	if t := a.early[w.packet.ReverseSeq%answerSlots]; t.number == w.packet.ReverseSeq+1 {
		slot.settle(t, done)
	}
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
