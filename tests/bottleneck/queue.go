package bottleneck

import (
	"math/rand/v2"

	"oneway.example/exporter/core/instant"
)

// discipline is a queue.
type discipline interface {
	enqueue(e entry)
	// dequeue removes the packet to transmit; false if all waiting packets were dropped.
	dequeue(at instant.Time) (entry, bool)
	// head is the size of the next packet, as far as known.
	head() (size int, ok bool)
	byteCount() int
}

func (c Config) discipline(seed uint64, s *stage) discipline {
	switch c.Discipline {
	case CoDel:
		return &managed{stage: s}
	case FQCoDel:
		return &fair{stage: s, flows: make(map[uint32]*flow)}
	case RED:
		return &fifo{stage: s, early: &red{rng: rand.New(rand.NewPCG(seed, 7)), low: float64(c.Queue) / 4, high: float64(c.Queue) * 3 / 8}}
	case TailDrop, HeadDrop:
	}
	return &fifo{stage: s}
}

// list is a list of packets, with its length in bytes.
type list struct {
	entries []entry
	first   int
	bytes   int
}

func (l *list) push(e entry) {
	l.entries = append(l.entries, e)
	l.bytes += e.Size
}

func (l *list) len() int { return len(l.entries) - l.first }

func (l *list) peek() (int, bool) {
	if l.len() == 0 {
		return 0, false
	}
	return l.entries[l.first].Size, true
}

func (l *list) pop() entry {
	e := l.entries[l.first]
	l.first++
	l.bytes -= e.Size
	if l.first > len(l.entries)/2 {
		l.entries = append(l.entries[:0], l.entries[l.first:]...)
		l.first = 0
	}
	return e
}

// full reports whether the limits leave no space for a packet.
func (s *stage) full(q *list, size int) bool {
	c := &s.config
	return c.Queue > 0 && q.bytes+size > c.Queue || c.QueuePackets > 0 && q.len()+1 > c.QueuePackets
}

// fifo drops at its tail or at its head, early if it has a rule for that, and packets that are too old.
type fifo struct {
	list
	stage *stage
	early *red
}

func (q *fifo) byteCount() int { return q.bytes }

func (q *fifo) head() (int, bool) { return q.peek() }

func (q *fifo) enqueue(e entry) {
	if q.early != nil && q.early.drops(q.bytes) {
		q.stage.drop(e, e.Entry, Managed)
		return
	}
	for q.stage.full(&q.list, e.Size) {
		if q.stage.config.Discipline != HeadDrop || q.len() == 0 {
			q.stage.drop(e, e.Entry, Refused)
			return
		}
		q.stage.drop(q.pop(), e.Entry, Evicted)
	}
	q.push(e)
}

func (q *fifo) dequeue(at instant.Time) (entry, bool) {
	limit := q.stage.config.QueueTime
	for q.len() > 0 {
		e := q.pop()
		if limit > 0 && at.Sub(e.Entry) > limit {
			q.stage.drop(e, at, Expired)
			continue
		}
		return e, true
	}
	return entry{}, false
}

type red struct {
	rng                *rand.Rand
	low, high, average float64
}

func (r *red) drops(waiting int) bool {
	r.average += 0.01 * (float64(waiting) - r.average)
	p := 0.0
	switch {
	case r.average > 2*r.high:
		p = 1
	case r.average > r.high:
		p = 0.1 + 0.9*(r.average-r.high)/r.high
	case r.average > r.low:
		p = 0.1 * (r.average - r.low) / (r.high - r.low)
	}
	return r.rng.Float64() < p
}
