// Package spool is a bounded queue of records, first in, first out, in the files of a directory. A record is opaque, and has a number of
// points, which are what the spool counts.
//
// # Files
//
// Records are appended to segments, one file each. Every point has a number, which increases by one from the first point of
// the directory on: a record has the number of its first point, the name of a segment is that of its first record, and the file
// "position" has the number of the first point that is not yet delivered. So the number of lost points is known whatever
// was lost. A record has a checksum (CRC32C) of its own and another one of its header.
//
// # Faults
//
// The process may be killed at any byte: a record that is only partly in its file is cut off by the next start. A damaged
// record is skipped, and its points are counted as dropped. Above the limit the oldest segment is dropped. A write that
// fails, on a full or a read-only disk, leaves the new records in memory, at most memoryBytes of them; later ones are
// dropped until a write succeeds again, and then the records in memory are written first. Reading goes on meanwhile.
// A directory or file that is removed or renamed while the spool is open is noticed by Check, and written again: the files
// stay open, so that their records can be read.
//
// Nothing waits for the disk (fsync): a loss of power may lose what the kernel has not yet written.
package spool

import (
	"errors"
	"math"
	"sync"
)

// Options are the settings of a spool.
type Options struct {
	// Dir is created with mode 0700 if it does not exist; empty: the records are in memory only.
	Dir string
	// MaxBytes is the limit of all records, with their headers.
	MaxBytes int64
}

const (
	// segmentsPerLimit: a segment has this share of the limit, and at most maxSegmentBytes; this is what is dropped at once.
	segmentsPerLimit = 32
	maxSegmentBytes  = 8 << 20
	minSegmentBytes  = 4 << 10
	// memoryBytes is the limit of records in memory while the disk cannot be written.
	memoryBytes = 4 << 20
	// maxOpen is the number of segments up to which all are open, so that the removal of their files loses no record.
	maxOpen = 64
	// maxNumber of a point: a larger one in a file is damage.
	maxNumber = 1 << 62
)

// ErrLocked means that another process, or another spool of this one, uses the directory.
var ErrLocked = errors.New("spool: the directory is in use by another process")

// Spool is a queue. Make one with Open. Its methods are safe for concurrent use; one reader calls Next and Done.
type Spool struct {
	options      Options
	segmentBytes int64
	ready        chan struct{}

	latest struct { // after the last operation
		sync.Mutex
		stats Stats
	}

	mu       sync.Mutex // guards the fields below
	dir      directory
	segments []*segment // oldest first
	writing  *segment   // the last one, to which records are appended; nil: the next record begins a new one
	tail     uint64     // number of the next new point
	position uint64     // number of the first point that is not delivered
	offset   int64      // in the oldest segment: of the first record that is not delivered
	held     held
	head     [headerBytes]byte // of the record that is written or read
	window   []byte            // for find
	spare    *memory           // of a segment that was removed
	stats    Stats
	closed   bool
}

// held is the record that Next has returned.
type held struct {
	header
	segment *segment // nil: none
	at      int64
}

// Stats are the content of a spool, and its counters since Open.
type Stats struct {
	// Points are not yet delivered; Bytes is the space of their records.
	Points, Bytes int64
	// Dropped points were lost: above the limit, on a disk that could not be written, or in damaged records.
	Dropped uint64
	// Damaged is the number of places in files with one or more damaged records.
	Damaged uint64
	// Moved is the number of times that Check found the directory or files removed, renamed or replaced.
	Moved uint64
	// Err is the error of the last write; nil: it succeeded.
	Err error
}

// Open opens a spool with the records that an earlier process has left. A directory that cannot be written is no error (Stats
// has it); one that cannot be read, or is in use, is.
func Open(o Options) (*Spool, error) {
	s := &Spool{options: o, segmentBytes: min(max(o.MaxBytes/segmentsPerLimit, minSegmentBytes), maxSegmentBytes), ready: make(chan struct{}, 1)}
	defer s.publish()
	if o.Dir == "" {
		return s, nil
	}
	if s.stats.Err = s.dir.open(o.Dir); s.stats.Err != nil {
		if errors.Is(s.stats.Err, ErrLocked) || !full(s.stats.Err) {
			return nil, s.stats.Err
		}
		return s, nil
	}
	if err := s.recover(); err != nil {
		_ = s.dir.close() // the first error is returned
		return nil, err
	}
	return s, nil
}

// recover lists the segments, cuts off what a killed process has left at the end of the last one, and finds the position.
func (s *Spool) recover() (err error) {
	if s.segments, err = s.dir.list(); err != nil {
		return err
	}
	for n := len(s.segments); n > 0; n = len(s.segments) {
		last := s.segments[n-1]
		end, tail := s.end(last)
		if end > 0 {
			s.tail, s.stats.Err = tail, last.cut(end)
			break
		}
		s.discard(last)
		s.segments = s.segments[:n-1]
	}
	known := false
	if s.position, known = s.dir.position(); !known && len(s.segments) > 0 {
		s.position = s.segments[0].first
	}
	s.tail = max(s.tail, s.position) // the newest records were lost with the power
	for len(s.segments) > 1 && s.segments[1].first <= s.position {
		s.removeOldest()
	}
	s.skipDelivered()
	for _, g := range s.segments[:min(maxOpen, len(s.segments))] {
		g.open()
	}
	s.signal()
	return nil
}

// Check makes the directory again if it was removed, renamed or replaced by another one, and the files in it that were, with all
// records that still can be read; and it writes what is in memory, as Append does. Stats has the result. Call it every second or so.
func (s *Spool) Check() {
	s.mu.Lock()
	defer s.unlock()
	if s.closed || s.options.Dir == "" {
		return
	}
	left := s.leave()
	s.stats.Err = s.rescue()
	if left {
		s.stats.Moved++
		s.dir.save(s.position)
	}
}

// end is the offset after the last complete record of a segment, and the number after its last point.
func (s *Spool) end(of *segment) (end int64, tail uint64) {
	for {
		h, at, ok := s.find(of, end, maxNumber)
		if !ok {
			return end, tail
		}
		end, tail = at+h.size(), h.end()
	}
}

// skipDelivered moves the offset to the position.
func (s *Spool) skipDelivered() {
	for len(s.segments) > 0 {
		h, at, ok := s.find(s.segments[0], s.offset, s.limit())
		if !ok || h.first >= s.position {
			return
		}
		s.offset = at + h.size()
	}
}

// limit is the number after the last point that the oldest segment can have.
func (s *Spool) limit() uint64 {
	if len(s.segments) > 1 {
		return s.segments[1].first
	}
	return s.tail
}

// Append adds a record of at least one point. It does not fail: what cannot be kept is counted as dropped.
func (s *Spool) Append(record []byte, points int) {
	s.mu.Lock()
	defer s.unlock()
	h := header{first: s.tail, points: uint32(points), length: uint32(len(record))}
	if s.closed || points <= 0 {
		return
	}
	if int64(len(record)) > math.MaxUint32-headerBytes || h.size() > s.options.MaxBytes {
		s.drop(uint64(points)) // more than the whole spool
		return
	}
	s.stats.Err = s.rescue()
	for len(s.segments) > 0 && s.total()+h.size() > s.options.MaxBytes {
		s.removeOldest()
	}
	if s.stats.Err == nil {
		s.stats.Err = s.write(&h, record)
	}
	if s.stats.Err != nil && !s.keep(&h, record) {
		s.drop(uint64(points))
		return
	}
	s.tail = h.end()
	s.signal()
}

// drop counts points without a record.
func (s *Spool) drop(points uint64) { s.stats.Dropped += points }

func (s *Spool) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Ready receives after an Append, and after Open; several may be one.
func (s *Spool) Ready() <-chan struct{} { return s.ready }

// Next returns the oldest record, in the space of into if it fits, and its number of points. Until Done it returns the same one
// again, or a later one if the limit has dropped it. A nil record: there is none.
func (s *Spool) Next(into []byte) (record []byte, points int) {
	s.mu.Lock()
	defer s.unlock()
	s.release()
	for len(s.segments) > 0 && !s.closed {
		oldest := s.segments[0]
		h, at, ok := s.find(oldest, s.offset, s.limit())
		if !ok {
			s.lose(s.limit())
			if len(s.segments) == 1 {
				s.offset = oldest.size
				return nil, 0
			}
			s.removeOldest()
			continue
		}
		s.offset = at + h.size()
		if h.first < s.position { // delivered before
			continue
		}
		s.lose(h.first)
		into = grow(into, int(h.length))
		if !oldest.read(into, at+headerBytes) || checksum(into) != h.content {
			s.lose(h.end())
			continue
		}
		s.offset, s.held = at, held{h, oldest, at}
		return into, int(h.points)
	}
	return nil, 0
}

// release gives up the record that Next has returned: if it has been dropped meanwhile, it is lost now.
func (s *Spool) release() {
	if s.dropped() {
		s.drop(uint64(s.held.points))
	}
	s.held = held{}
}

// dropped reports whether only the reader has the record that Next has returned: the limit has dropped its segment.
func (s *Spool) dropped() bool {
	return s.held.segment != nil && (len(s.segments) == 0 || s.segments[0] != s.held.segment)
}

// lose counts the points up to that number as lost by damage.
func (s *Spool) lose(until uint64) {
	if until > s.position {
		s.drop(until - s.position)
		s.stats.Damaged++
		s.position = until
		s.dir.save(until) // a restart does not count them again
	}
}

// Done removes the record that Next has returned last.
func (s *Spool) Done() {
	s.mu.Lock()
	defer s.unlock()
	h := s.held
	s.held = held{}
	if h.segment == nil || s.closed {
		return
	}
	if len(s.segments) > 0 && s.segments[0] == h.segment {
		s.offset, s.position = h.at+h.size(), h.end()
	}
	s.dir.save(s.position)
}

// removeOldest removes the oldest segment. Its points that are not delivered are dropped, except those of the record that the
// reader has.
func (s *Spool) removeOldest() {
	end := s.limit()
	from := s.position
	if s.held.segment == s.segments[0] {
		from = s.held.end()
	}
	if end > from {
		s.drop(end - from)
	}
	s.position, s.offset = max(s.position, end), 0
	if s.writing == s.segments[0] {
		s.writing = nil
	}
	s.discard(s.segments[0])
	s.segments = append(s.segments[:0], s.segments[1:]...)
	s.dir.save(s.position) // a restart does not count its points again
}

// total is the space of all segments.
func (s *Spool) total() (bytes int64) {
	for _, one := range s.segments {
		bytes += one.size
	}
	return bytes
}

// Stats returns the content and counters after the last operation. It does not wait for one that waits for its disk.
func (s *Spool) Stats() Stats {
	s.latest.Lock()
	defer s.latest.Unlock()
	return s.latest.stats
}

// unlock ends an operation.
func (s *Spool) unlock() {
	s.publish()
	s.mu.Unlock()
}

// publish keeps the content and counters for Stats.
func (s *Spool) publish() {
	stats := s.stats
	stats.Points = int64(s.tail - s.position)
	if stats.Points > 0 {
		stats.Bytes = s.total() - s.offset
	}
	if s.dropped() {
		stats.Points, stats.Bytes = stats.Points+int64(s.held.points), stats.Bytes+s.held.size()
	}
	s.latest.Lock()
	defer s.latest.Unlock()
	s.latest.stats = stats
}

// Close ends the use of the directory, whose records stay.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.rescue()
	for _, one := range s.segments {
		one.close()
	}
	return errors.Join(err, s.dir.close())
}
