package lab

import (
	"fmt"
	"sync"
	"time"

	"oneway.example/exporter/core/instant"
)

// Outcome is the outcome of a packet.
type Outcome uint8

// The outcomes.
const (
	// Inside: it is still on its way.
	Inside Outcome = iota
	// Delivered: it was sent on to the receiver's interface.
	Delivered
	// DroppedQueue: the queue was full.
	DroppedQueue
	// DroppedLoss: lost on the link by chance.
	DroppedLoss
	// Failed: the lab could not send it; Err has the error, and the run is invalid.
	Failed
)

// String is the outcome in words.
func (f Outcome) String() string {
	switch f {
	case Inside:
		return "inside"
	case Delivered:
		return "delivered"
	case DroppedQueue:
		return "dropped_queue"
	case DroppedLoss:
		return "dropped_loss"
	case Failed:
		return "failed"
	}
	return "invalid"
}

// Interval holds an instant that lies between two clock readings. The zero
// value means that it did not happen.
type Interval struct{ After, Before instant.Time }

// Middle is the best estimate.
func (i Interval) Middle() instant.Time { return i.After + (i.Before-i.After)/2 }

// Width is the uncertainty.
func (i Interval) Width() time.Duration { return i.Before.Sub(i.After) }

// Record is the truth about one classified packet. Times are the host's
// CLOCK_REALTIME, the one that all namespaces share.
type Record struct {
	// Index counts the classified packets of the direction in order of entry.
	Index uint64
	// Key is the classifier's.
	Key uint64
	// Size is the IP packet's length in bytes.
	Size int
	// Queued are the IP bytes, of packets of all classes, that waited in the queue when
	// it arrived. The queue holds at least Queued + Size if it was admitted, and less than
	// that if it was dropped there.
	Queued int
	// Entry is the kernel's timestamp at the link's entrance.
	Entry instant.Time
	// Departure is its departure from the queue, zero without one.
	Departure instant.Time
	// Due is its planned departure from the link, Exit the true one, Copy that of its
	// duplicate.
	Due        instant.Time
	Exit, Copy Interval
	Outcome    Outcome
	// Overtaken is the number of later packets that left before it by reordering.
	Overtaken uint8
	// Held: reordering held it back; it is reordered only if Overtaken is not 0.
	Held, Duplicated, Corrupted bool
}

// Delay is the true one-way delay, +- half of Exit.Width. Only for Delivered.
func (r *Record) Delay() time.Duration { return r.Exit.Middle().Sub(r.Entry) }

// Late is the time from its due time to its departure: the lab's own
// unpunctuality, part of the true delay and never a loss of truth.
func (r *Record) Late() time.Duration { return r.Exit.After.Sub(r.Due) }

// Counts are the outcomes of the packets of one class. Entered = Delivered +
// DroppedQueue + DroppedLoss + Failed + Inside(), always.
type Counts struct {
	Entered, Delivered, DroppedQueue, DroppedLoss, Failed uint64
	// Duplicated counts delivered copies, Reordered, Held and Corrupted the
	// delivered packets that were overtaken, held back and corrupted.
	Duplicated, Reordered, Held, Corrupted uint64
	// Capable counts the delivered packets of ECN-capable transports, Marked those of them that the link gave
	// the mark CE.
	Capable, Marked uint64
}

// Inside is the number of packets on their way.
func (c Counts) Inside() uint64 {
	return c.Entered - c.Delivered - c.DroppedQueue - c.DroppedLoss - c.Failed
}

// logChunk is the number of records per allocation: a log must not be
// copied as it grows, on the thread that keeps the times.
const logChunk = 4096

// truth is the log of one direction. The link writes, tests read.
type truth struct {
	mu      sync.Mutex
	limit   int
	chunks  [][]Record
	length  int
	full    bool
	counted Counts
	others  Counts
	// byKey replaces the log if it is not nil.
	byKey map[uint64]*Counts
}

// count changes the counters of a class, and those of the key where there are any. The caller holds mu.
func (t *truth) count(counted bool, key uint64, change func(*Counts)) {
	if !counted {
		change(&t.others)
		return
	}
	change(&t.counted)
	if t.byKey == nil {
		return
	}
	c := t.byKey[key]
	if c == nil {
		c = &Counts{}
		t.byKey[key] = c
	}
	change(c)
}

// append adds a record, unless the log is full. The caller holds mu.
func (t *truth) append(r Record) (index int, ok bool) {
	if t.length >= t.limit {
		t.full = true
		return 0, false
	}
	if t.length%logChunk == 0 {
		t.chunks = append(t.chunks, make([]Record, 0, logChunk))
	}
	last := len(t.chunks) - 1
	t.chunks[last] = append(t.chunks[last], r)
	t.length++
	return t.length - 1, true
}

// at is a record in place. The caller holds mu.
func (t *truth) at(i int) *Record { return &t.chunks[i/logChunk][i%logChunk] }

// snapshot copies the log.
func (t *truth) snapshot() []Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Record, 0, t.length)
	for _, c := range t.chunks {
		all = append(all, c...)
	}
	return all
}

func (t *truth) totals() (counted, others Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counted, t.others
}

// keys copies the counters of all keys.
func (t *truth) keys() map[uint64]Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[uint64]Counts, len(t.byKey))
	for key, c := range t.byKey {
		all[key] = *c
	}
	return all
}

func (t *truth) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.full {
		return fmt.Errorf("the log is full: more than %d classified packets, raise Options.LogLimit", t.limit)
	}
	return nil
}
