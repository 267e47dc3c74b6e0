// Package record passes raw samples from the measuring packages to their readers: packets of light probes, packets and values of
// runs, and tables of any other kind, such as samples of TCP connections or a track. A new kind needs a Schema only.
//
// A Recorder is passed to every prober (probe.Env). The prober records its samples; a reader opens a Listener,
// which has a bounded queue of its own. Recording never waits: a sample that does not fit into a queue is dropped
// there, and that listener reports the number of missed samples. Without listeners recording costs one atomic load,
// and it never allocates:
//
//	if r := env.Recorder.Packets(); r.HasListeners() {
//		r.Record(&record.Packet{...})
//	}
package record

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Recorder has a stream of each kind of sample. The zero value is ready; a nil *Recorder has no listeners and
// accepts none.
type Recorder struct {
	packets Stream[Packet]
	rows    Stream[Rows]
	results Stream[Result]
	tables  Stream[Table]
}

// Packets is the stream of light probes' packets.
func (r *Recorder) Packets() *Stream[Packet] {
	if r == nil {
		return nil
	}
	return &r.packets
}

// Rows is the stream of rows of runs, a transfer at a time.
func (r *Recorder) Rows() *Stream[Rows] {
	if r == nil {
		return nil
	}
	return &r.rows
}

// Results is the stream of the values of completed runs.
func (r *Recorder) Results() *Stream[Result] {
	if r == nil {
		return nil
	}
	return &r.results
}

// Tables is the stream of tables of every kind.
func (r *Recorder) Tables() *Stream[Table] {
	if r == nil {
		return nil
	}
	return &r.tables
}

// Stream carries the samples of one kind. Its methods are safe for concurrent use.
type Stream[T any] struct {
	hasListeners atomic.Bool // there are listeners
	mu           sync.RWMutex
	listeners    []*Listener[T]
}

// HasListeners reports whether there are listeners; a nil stream has none.
func (s *Stream[T]) HasListeners() bool { return s != nil && s.hasListeners.Load() }

// Record copies v to every listener. It waits for no reader.
func (s *Stream[T]) Record(v *T) {
	if !s.HasListeners() {
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, l := range s.listeners {
		l.put(v)
	}
}

// Listen opens a listener whose queue holds so many samples, at least one. The caller closes it.
func (s *Stream[T]) Listen(queue int) *Listener[T] { return s.ListenWeighed(queue, 0, nil) }

// ListenWeighed is Listen with a limit of the sum of the queued samples' weights too. One sample of any weight fits into an empty
// queue. A nil weigh is without this limit.
func (s *Stream[T]) ListenWeighed(queue, most int, weigh func(*T) int) *Listener[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &Listener[T]{stream: s, ring: make([]T, max(queue, 1)), most: most, weigh: weigh}
	s.listeners = append(s.listeners, l)
	s.hasListeners.Store(true)
	return l
}

// Listener takes the samples of a stream. Its methods are safe for concurrent use.
type Listener[T any] struct {
	stream *Stream[T]
	most   int // limit of weight
	weigh  func(*T) int

	mu          sync.Mutex
	ring        []T
	first, held int // the oldest sample, and the number of queued ones
	weight      int // of the queued samples
	missed      uint64
}

func (l *Listener[T]) weightOf(v *T) int {
	if l.weigh == nil {
		return 0
	}
	return l.weigh(v)
}

// Take moves the oldest samples to into. It returns their number, at most len(into), and the number dropped since
// the last call because the queue was full.
func (l *Listener[T]) Take(into []T) (n int, missed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; n < len(into) && l.held > 0; n++ {
		l.weight -= l.weightOf(&l.ring[l.first])
		into[n], l.ring[l.first] = l.ring[l.first], *new(T) // drops the references of the sample
		l.first = (l.first + 1) % len(l.ring)
		l.held--
	}
	missed, l.missed = l.missed, 0
	return n, missed
}

// Close ends the listener. Queued samples can still be taken.
func (l *Listener[T]) Close() {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = slices.DeleteFunc(s.listeners, func(other *Listener[T]) bool { return other == l })
	s.hasListeners.Store(len(s.listeners) > 0)
}

func (l *Listener[T]) put(v *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == len(l.ring) {
		l.missed++
		return
	}
	to := &l.ring[(l.first+l.held)%len(l.ring)]
	*to = *v // weigh gets the copy: v would be allocated for it
	weight := l.weightOf(to)
	if l.held > 0 && weight > 0 && l.weight+weight > l.most {
		*to = *new(T)
		l.missed++
		return
	}
	l.weight += weight
	l.held++
}
