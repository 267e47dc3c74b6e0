// Package record carries raw samples from what measures to whoever reads them: packets of
// light probes, rows of runs, points of a track.
//
// A Recorder is leased to every prober (probe.Env). Whoever measures records what it has; whoever
// reads opens a Listener, which has a bounded queue of its own. Recording never waits: a sample
// that finds a queue full is dropped there, and that listener is told how many it has missed.
// While nobody listens, recording costs one atomic load, and it never allocates:
//
//	if r := env.Recorder.Packets(); r.Heard() {
//		r.Record(&record.Packet{...})
//	}
package record

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Recorder has a stream of each kind of sample. The zero value is ready; a nil *Recorder is
// one that nobody listens to, and that nobody can.
type Recorder struct {
	packets Stream[Packet]
	rows    Stream[Rows]
	points  Stream[Point]
}

// Packets are those of light probes.
func (r *Recorder) Packets() *Stream[Packet] {
	if r == nil {
		return nil
	}
	return &r.packets
}

// Rows are those of runs, a transfer at a time.
func (r *Recorder) Rows() *Stream[Rows] {
	if r == nil {
		return nil
	}
	return &r.rows
}

// Points are those of the track.
func (r *Recorder) Points() *Stream[Point] {
	if r == nil {
		return nil
	}
	return &r.points
}

// Stream carries the samples of one kind. Its methods are safe for concurrent use.
type Stream[T any] struct {
	heard     atomic.Bool // there are listeners
	mu        sync.RWMutex
	listeners []*Listener[T]
}

// Heard says whether anybody listens; of a nil stream nobody does.
func (s *Stream[T]) Heard() bool { return s != nil && s.heard.Load() }

// Record gives a copy of v to everybody who listens. It waits for no reader.
func (s *Stream[T]) Record(v *T) {
	if !s.Heard() {
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, l := range s.listeners {
		l.put(v)
	}
}

// Listen opens a listener whose queue holds so many samples, at least one. Close it.
func (s *Stream[T]) Listen(queue int) *Listener[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &Listener[T]{stream: s, ring: make([]T, max(queue, 1))}
	s.listeners = append(s.listeners, l)
	s.heard.Store(true)
	return l
}

// Listener takes the samples of a stream. Its methods are safe for concurrent use.
type Listener[T any] struct {
	stream *Stream[T]

	mu          sync.Mutex
	ring        []T
	first, held int // the oldest sample, and how many there are
	missed      uint64
}

// Take moves the oldest samples to into, and says how many they are, at most len(into), and how many have been
// dropped since the last call because the queue was full.
func (l *Listener[T]) Take(into []T) (n int, missed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; n < len(into) && l.held > 0; n++ {
		into[n], l.ring[l.first] = l.ring[l.first], *new(T) // nothing that it refers to is kept
		l.first = (l.first + 1) % len(l.ring)
		l.held--
	}
	missed, l.missed = l.missed, 0
	return n, missed
}

// Close ends the listener. What is queued can still be taken.
func (l *Listener[T]) Close() {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = slices.DeleteFunc(s.listeners, func(other *Listener[T]) bool { return other == l })
	s.heard.Store(len(s.listeners) > 0)
}

func (l *Listener[T]) put(v *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == len(l.ring) {
		l.missed++
		return
	}
	l.ring[(l.first+l.held)%len(l.ring)] = *v
	l.held++
}
