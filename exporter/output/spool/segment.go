package spool

import (
	"errors"
	"io"
	"os"
)

// segment has consecutive records.
type segment struct {
	first uint64 // number of the first point
	size  int64
	name  string  // of the file; empty: in memory
	data  storage // nil: not open
}

// storage is a file, or memory.
type storage interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// read fills b from an offset, and reports whether it could.
func (g *segment) read(b []byte, at int64) bool {
	if g.data == nil {
		f, err := os.Open(g.name)
		if err != nil {
			return false
		}
		g.data = f
	}
	n, _ := g.data.ReadAt(b, at)
	return n == len(b)
}

// cut removes everything after an offset.
func (g *segment) cut(end int64) error {
	if end == g.size {
		return nil
	}
	g.size = end
	return os.Truncate(g.name, end)
}

func (g *segment) close() {
	if g.data != nil {
		_ = g.data.Close() // every write has returned its error
		g.data = nil
	}
}

// memory is a storage without a file.
type memory struct{ b []byte }

// ReadAt is that of io.ReaderAt.
func (m *memory) ReadAt(b []byte, at int64) (int, error) {
	if at > int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(b, m.b[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt is that of io.WriterAt; the segments are only appended to.
func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	m.b = append(m.b[:at], b...)
	return len(b), nil
}

// Truncate cuts off the end.
func (m *memory) Truncate(size int64) error {
	m.b = m.b[:size]
	return nil
}

// Close does nothing.
func (m *memory) Close() error { return nil }

// write appends a record to the last segment, or to a new one.
func (s *Spool) write(h *header, record []byte) error {
	if s.writing == nil || s.writing.size >= s.segmentBytes {
		g := &segment{first: h.first}
		if s.options.Dir == "" {
			g.data = s.memory()
		} else if err := s.dir.create(g); err != nil {
			return err
		}
		s.begin(g)
	}
	err := s.put(s.writing, h, record)
	if err != nil {
		s.begin(nil)
	}
	return err
}

// begin makes a new segment the last one; nil: the next record begins one.
func (s *Spool) begin(g *segment) {
	if old := s.writing; old != nil {
		if last := len(s.segments) - 1; old.size == 0 { // nothing could be written to it
			s.discard(old)
			s.segments = s.segments[:last]
		} else if last > 0 && old.name != "" {
			old.close() // the reader opens it when it is the oldest
		}
	}
	if s.writing = g; g != nil {
		s.segments = append(s.segments, g)
	}
}

// put appends a record to a segment.
func (s *Spool) put(to *segment, h *header, record []byte) error {
	h.content = checksum(record)
	h.put(&s.head)
	_, err := to.data.WriteAt(s.head[:], to.size)
	if err == nil {
		_, err = to.data.WriteAt(record, to.size+headerBytes)
	}
	if err != nil {
		return errors.Join(err, to.data.Truncate(to.size))
	}
	to.size += h.size()
	return nil
}

// keep appends a record to a segment in memory, since the disk cannot be written: false if there are too many.
func (s *Spool) keep(h *header, record []byte) bool {
	var used int64
	var last *segment
	for _, g := range s.segments {
		if g.name == "" {
			used, last = used+g.size, g
		}
	}
	if used+h.size() > memoryBytes {
		return false
	}
	if last == nil || last.size >= min(s.segmentBytes, rescueBytes) {
		last = &segment{first: h.first, data: s.memory()}
		s.segments = append(s.segments, last)
	}
	return s.put(last, h, record) == nil
}

// rescueBytes is the size of a segment in memory while the disk cannot be written, of which each Append tries to write one.
const rescueBytes = 256 << 10

// rescue writes to disk what is in memory because the disk could not be written.
func (s *Spool) rescue() error {
	if s.options.Dir == "" {
		return nil
	}
	if err := s.dir.open(s.options.Dir); err != nil {
		return err
	}
	for _, g := range s.segments {
		kept, inMemory := g.data.(*memory)
		if !inMemory {
			continue
		}
		if err := s.dir.create(g); err != nil {
			return err
		}
		if _, err := g.data.WriteAt(kept.b, 0); err != nil {
			g.close()
			g.data = kept
			err = errors.Join(err, os.Remove(g.name))
			g.name = ""
			return err
		}
		g.close() // the reader opens it
		s.spare = kept
	}
	return nil
}

// discard removes a segment.
func (s *Spool) discard(g *segment) {
	if m, ok := g.data.(*memory); ok {
		s.spare = m
	}
	g.close()
	if g.name != "" {
		_ = os.Remove(g.name) // on a read-only disk its records are repeated after a restart
	}
}

// memory is an empty storage.
func (s *Spool) memory() *memory {
	m := s.spare
	if m == nil {
		return new(memory)
	}
	s.spare = nil
	m.b = m.b[:0]
	return m
}
