package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// segment has consecutive records.
type segment struct {
	first uint64 // number of the first point
	size  int64
	// name is the name of its file in root; empty: the records are in memory, or in a file whose name was taken from it.
	name string
	root *os.Root
	data storage // nil: not open
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
	if !g.open() {
		return false
	}
	n, _ := g.data.ReadAt(b, at)
	return n == len(b)
}

// open opens the file for reading, if it is not open, and reports whether it is.
func (g *segment) open() bool {
	if g.data == nil && g.name != "" {
		if f, err := g.root.Open(g.name); err == nil {
			g.data = f
		}
	}
	return g.data != nil
}

// cut removes everything after an offset.
func (g *segment) cut(end int64) error {
	if end == g.size {
		return nil
	}
	g.size = end
	f, err := g.root.OpenFile(g.name, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return errors.Join(f.Truncate(end), f.Close())
}

// unnamed reports whether the file has no name left; false if it is not open.
func (g *segment) unnamed() bool {
	f, is := g.data.(*os.File)
	return is && g.name != "" && removed(f)
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
		} else if last >= maxOpen && old.name != "" {
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
		if _, in := g.data.(*memory); in {
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

// rescue writes to disk what has no file there, because the disk could not be written or the file was removed.
func (s *Spool) rescue() error {
	if s.options.Dir == "" {
		return nil
	}
	if err := s.enter(); err != nil {
		return err
	}
	for _, g := range s.segments {
		kept := g.data
		if g.name != "" || kept == nil {
			continue
		}
		if err := s.dir.create(g); err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(g.data, 0), io.NewSectionReader(kept, 0, g.size)); err != nil {
			g.close()
			err = errors.Join(err, g.root.Remove(g.name))
			g.name, g.root, g.data = "", nil, kept
			return err
		}
		if m, in := kept.(*memory); in {
			s.spare = m
		} else {
			_ = kept.Close() // it was only read
		}
	}
	return nil
}

// enter opens the directory, if it is not open: a new one, or one that a spool has emptied.
func (s *Spool) enter() error {
	if s.dir.path != "" {
		return nil
	}
	if err := s.dir.open(s.options.Dir); err != nil {
		return err
	}
	found, err := s.dir.list()
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("spool: %s was replaced by a directory with records of another spool, which the next start delivers", s.options.Dir)
	}
	if err != nil {
		return errors.Join(err, s.dir.close())
	}
	return nil
}

// leave takes the names from segments whose files were removed, or are no longer at the path of the directory, and reports whether
// there are such files or the directory is such. They stay open, so that rescue can write them again.
func (s *Spool) leave() (left bool) {
	moved := s.dir.moved()
	left = moved
	for _, g := range s.segments {
		if moved && g.open() || g.unnamed() {
			g.name, g.root, left = "", nil, true
		}
	}
	if p := s.dir.file; p != nil && removed(p) {
		_ = p.Close() // every write has returned its error
		s.dir.file, left = nil, true
	}
	if left {
		s.begin(nil)
	}
	if moved {
		_ = s.dir.close() // nothing in it is unwritten
	}
	return left
}

// discard removes a segment.
func (s *Spool) discard(g *segment) {
	if m, ok := g.data.(*memory); ok {
		s.spare = m
	}
	g.close()
	if g.name != "" {
		_ = g.root.Remove(g.name) // on a read-only disk its records are repeated after a restart
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
