package sched

import "time"

// entry is one task's place in the plan. All fields but task are guarded by the
// pacer's mutex.
type entry struct {
	task    Task
	due     time.Duration
	index   int // in the heap; absent if it is not there
	removed bool
}

const absent = -1

// queue is a heap of entries, the earliest first. It has four children a node:
// half as deep as a binary heap, and the four times that are compared lie in
// one cache line, because each slot carries its time.
type queue struct{ slots []slot }

type slot struct {
	due   time.Duration
	entry *entry
}

const children = 4

func (q *queue) len() int { return len(q.slots) }

// first is the earliest time; the queue must not be empty.
func (q *queue) first() time.Duration { return q.slots[0].due }

func (q *queue) push(e *entry) {
	q.slots = append(q.slots, slot{})
	q.up(len(q.slots)-1, slot{e.due, e})
}

func (q *queue) pop() *entry {
	e := q.slots[0].entry
	q.remove(e)
	return e
}

// remove takes e out; it must be in the queue.
func (q *queue) remove(e *entry) {
	i, last := e.index, len(q.slots)-1
	moved := q.slots[last]
	q.slots[last] = slot{}
	q.slots = q.slots[:last]
	e.index = absent
	if i == last {
		return
	}
	if i > 0 && moved.due < q.slots[(i-1)/children].due {
		q.up(i, moved)
		return
	}
	q.down(i, moved)
}

func (q *queue) up(i int, s slot) {
	for i > 0 {
		parent := (i - 1) / children
		if q.slots[parent].due <= s.due {
			break
		}
		q.place(i, q.slots[parent])
		i = parent
	}
	q.place(i, s)
}

func (q *queue) down(i int, s slot) {
	for {
		least := i*children + 1
		if least >= len(q.slots) {
			break
		}
		end := min(least+children, len(q.slots))
		for c := least + 1; c < end; c++ {
			if q.slots[c].due < q.slots[least].due {
				least = c
			}
		}
		if s.due <= q.slots[least].due {
			break
		}
		q.place(i, q.slots[least])
		i = least
	}
	q.place(i, s)
}

func (q *queue) place(i int, s slot) {
	q.slots[i] = s
	s.entry.index = i
}
