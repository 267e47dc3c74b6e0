package report

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
)

// Write keeps a run: its header, and a body that encoding/json can write. The file
// appears whole or not at all; the oldest go until it has room. Whatever the error,
// the header is listed, unless the id is wrong or there already.
func (s *Store) Write(h Header, body any) error {
	if err := checkID(h.ID); err != nil {
		return err
	}
	h = h.bounded()
	h.FileBytes = 0
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	o := s.options
	s.mu.Unlock()
	if !s.listed {
		s.scan(o) // it could not be read before
	}
	s.mu.Lock()
	exists := slices.ContainsFunc(s.index, func(other Header) bool { return other.ID == h.ID })
	s.mu.Unlock()
	if exists {
		return fmt.Errorf("%w: %s", ErrExists, h.ID)
	}
	var err error
	if o.Dir != "" {
		h.FileBytes, err = s.file(o, h, body)
	}
	s.mu.Lock()
	gone := s.excess(1, h.FileBytes)
	s.keep(h)
	s.stats.Error = err
	switch {
	case err != nil:
		s.stats.Failed++
	case o.Dir != "":
		s.stats.Written++
	}
	s.mu.Unlock()
	switch {
	case err != nil && !errors.As(err, new(syscall.Errno)): // of this report, not of the directory
		o.Log.Error("Report of a run not kept", "id", h.ID, "dir", o.Dir, "err", err)
	case o.Dir != "":
		s.tell(o, err)
	}
	s.remove(o, gone)
	return err
}

// file writes a report's file, and returns its size, or 0 and why it is not there.
func (s *Store) file(o Options, h Header, body any) (size int64, err error) {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return 0, fmt.Errorf("report: %w", err)
	}
	err = withRoot(o.Dir, func(r *os.Root) (err error) {
		name := temporary + h.ID
		defer func() {
			if err != nil {
				_ = r.Remove(name) // what is wrong is told
			}
		}()
		if size, err = encode(r, name, o.MaxBytes, h, body); err != nil {
			return err
		}
		return r.Rename(name, h.ID+suffix)
	})
	if err != nil {
		return 0, fmt.Errorf("report: run %s: %w", h.ID, err)
	}
	return size, nil
}

// encode writes a new file of at most limit octets, through to the disk.
func encode(r *os.Root, name string, limit int64, h Header, body any) (size int64, err error) {
	f, err := r.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return 0, err
	}
	out := &limited{w: f, left: limit}
	zipped := gzip.NewWriter(out)
	err = json.NewEncoder(zipped).Encode(struct {
		Header Header `json:"header"`
		Body   any    `json:"body"`
	}{h, body})
	err = errors.Join(err, zipped.Close(), f.Sync(), f.Close())
	return limit - out.left, err
}

// limited is a writer with an end.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(b []byte) (int, error) {
	if int64(len(b)) > l.left {
		return 0, ErrTooLarge
	}
	n, err := l.w.Write(b)
	l.left -= int64(n)
	return n, err
}
