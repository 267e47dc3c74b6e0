package collect

import "oneway.example/exporter/core/record"

// Queues of raw samples, in samples. A transfer, a run and a table are one sample each. A transfer may have a million rows, and the
// tables of all connections of a transfer are recorded together: tableRows limits the rows of all queued tables, which are about 50
// reports of incidents, or the samples of two transfers.
const (
	rowsQueue    = 16
	resultsQueue = 64
	tablesQueue  = 1024
	tableRows    = 1 << 18
)

// queue is a listener with the memory of one batch. The zero value is empty.
type queue[T any] struct {
	from *record.Listener[T]
	into []T
}

func newQueue[T any](from *record.Listener[T]) queue[T] { return queue[T]{from, make([]T, 16)} }

func rowsOf(t *record.Table) int { return len(t.Rows) }

// each calls f with every queued sample, and returns the number of missed ones.
func (q *queue[T]) each(f func(*T)) (missed uint64) {
	for n := len(q.into); n > 0 && n == len(q.into); {
		var lost uint64
		n, lost = q.from.Take(q.into)
		missed += lost
		for i := range q.into[:n] {
			f(&q.into[i])
		}
		clear(q.into[:n]) // the rows are not needed any more
	}
	return missed
}

func (q *queue[T]) close() {
	if q.from != nil {
		q.from.Close()
	}
}
