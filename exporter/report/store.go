package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
)

// Options are a store's settings. The zero value keeps headers in memory only.
type Options struct {
	// Dir is made if need be; empty: no files. It belongs to one Store of one process.
	// Files of others in it are left alone, and do not count.
	Dir string
	// MaxBytes is how much all files may take, not counting the one being written; 0:
	// DefaultMaxBytes. The oldest go for it once that is there.
	MaxBytes int64
	// MaxRuns is how many runs are kept and listed; 0: DefaultMaxRuns.
	MaxRuns int
	// Log; nil: discarded.
	Log *slog.Logger
}

// Defaults of Options.
const (
	DefaultMaxBytes = 256 << 20
	DefaultMaxRuns  = 1000
)

// Names of files.
const (
	suffix    = ".json.gz"
	temporary = ".writing-"
)

// Errors of Store.
var (
	// ErrTooLarge: a report is larger than all may be together.
	ErrTooLarge = errors.New("report: larger than the directory may be")
	// ErrExists: a run of that id is there already.
	ErrExists = errors.New("report: this id is there already")
)

// Store keeps reports. All methods are safe for concurrent use.
type Store struct {
	writing sync.Mutex // one report at a time; taken before mu
	listed  bool       // the directory has been read; guarded by writing
	failing bool       // told that nothing can be kept; guarded by writing

	mu      sync.Mutex
	options Options
	index   []Header // newest first
	total   int64    // octets of their files
	stats   Stats
}

// Stats count what a store has done since it was opened, and say what it holds.
type Stats struct {
	// Written reports, Failed ones, and Removed ones to make room.
	Written, Failed, Removed uint64
	// Runs are listed; their files take Bytes.
	Runs  int
	Bytes int64
	// Error is why the last report was not written, or the directory not read; nil if
	// it was.
	Error error
}

// Open makes a store and lists what is in its directory. An error says that the
// options make no sense. A directory that cannot be used is no error: it is logged
// and counted, and tried again with each report.
func Open(o Options) (*Store, error) {
	s := &Store{}
	if err := s.Configure(o); err != nil {
		return nil, err
	}
	return s, nil
}

// Configure puts other options in force, as a reload does. On an error nothing
// changes.
func (s *Store) Configure(o Options) error {
	if o.MaxBytes < 0 || o.MaxRuns < 0 {
		return fmt.Errorf("report: limits of %d octets and %d runs; they must not be negative", o.MaxBytes, o.MaxRuns)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxRuns == 0 {
		o.MaxRuns = DefaultMaxRuns
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	old := s.options
	s.options = o
	s.mu.Unlock()
	s.failing = s.failing && o.Dir == old.Dir
	if o.Dir != old.Dir || !s.listed {
		s.scan(o)
	}
	s.mu.Lock()
	gone := s.excess(0, 0)
	s.mu.Unlock()
	s.remove(o, gone)
	return nil
}

// scan lists the directory; writing is held.
func (s *Store) scan(o Options) {
	var index []Header
	var total int64
	err := errors.New("report: no directory")
	if o.Dir != "" {
		index, total, err = list(o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// What was never in a file is still worth showing.
	for _, h := range s.index {
		if h.FileBytes == 0 && !slices.ContainsFunc(index, func(other Header) bool { return other.ID == h.ID }) {
			index = append(index, h)
		}
	}
	slices.SortFunc(index, newestFirst)
	s.index, s.total, s.stats.Error = index, total, nil
	s.listed = o.Dir == "" || err == nil
	if o.Dir != "" && err != nil {
		s.stats.Error = err
		s.tell(o, err)
	}
}

// tell logs when reports cannot be kept, and when they can again; writing is held.
func (s *Store) tell(o Options, err error) {
	switch {
	case err != nil && !s.failing:
		o.Log.Error("Reports of runs cannot be kept, will be tried again with the next", "dir", o.Dir, "err", err)
	case err == nil && s.failing:
		o.Log.Info("Reports of runs are kept again", "dir", o.Dir)
	}
	s.failing = err != nil
}

func newestFirst(a, b Header) int { return strings.Compare(b.ID, a.ID) }

// excess takes the oldest out of the index until there is room for runs more with
// bytes; mu is held. Their files are still there.
func (s *Store) excess(runs int, bytes int64) (gone []Header) {
	for n := len(s.index); n > 0 && (n+runs > s.options.MaxRuns || s.total+bytes > s.options.MaxBytes); n-- {
		h := s.index[n-1]
		s.index = s.index[:n-1]
		s.total -= h.FileBytes
		gone = append(gone, h)
	}
	return gone
}

// remove removes files; writing is held.
func (s *Store) remove(o Options, gone []Header) {
	var removed uint64
	for _, h := range gone {
		if h.FileBytes == 0 {
			continue
		}
		if err := withRoot(o.Dir, func(r *os.Root) error { return r.Remove(h.ID + suffix) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
			level := slog.LevelError
			if s.failing { // that is told
				level = slog.LevelDebug
			}
			o.Log.Log(context.Background(), level, "Report of a run cannot be removed", "dir", o.Dir, "id", h.ID, "err", err)
			continue
		}
		removed++
	}
	s.mu.Lock()
	s.stats.Removed += removed
	s.mu.Unlock()
}

// List has the runs that are kept, newest first. The caller may keep it.
func (s *Store) List() []Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.index)
}

// Last has at most n runs, newest first.
func (s *Store) Last(n int) []Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.index[:min(max(n, 0), len(s.index))])
}

// Stats may be called at any time.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Runs, stats.Bytes = len(s.index), s.total
	return stats
}

// Open opens the file of a report, which is gzip. An id that is not kept is an
// error that wraps fs.ErrNotExist, one that cannot be an id among them.
func (s *Store) Open(id string) (io.ReadCloser, error) {
	if checkID(id) != nil {
		return nil, fmt.Errorf("report: no run %.80q: %w", id, fs.ErrNotExist)
	}
	s.mu.Lock()
	dir := s.options.Dir
	s.mu.Unlock()
	if dir == "" {
		return nil, fmt.Errorf("report: no file of run %s: %w", id, fs.ErrNotExist)
	}
	var f *os.File
	err := withRoot(dir, func(r *os.Root) (err error) {
		f, err = openRegular(r, id+suffix)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return f, nil
}

// withRoot opens a directory for f, out of which no name leads, nor a symbolic link.
func withRoot(dir string, f func(*os.Root) error) error {
	r, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // nothing was written through it
	return f(r)
}

// keep puts a header into the list; mu is held.
func (s *Store) keep(h Header) {
	i, _ := slices.BinarySearchFunc(s.index, h, newestFirst)
	s.index = slices.Insert(s.index, i, h)
	s.total += h.FileBytes
}
