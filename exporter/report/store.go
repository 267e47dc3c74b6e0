package report

import (
	"cmp"
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
	"syscall"
)

// Options are a store's settings. The zero value keeps headers in memory only.
type Options struct {
	// Dir is made if need be; empty: no files. It belongs to one Store of one process.
	// Files of others in it are left alone, and do not count.
	Dir string
	// MaxBytes is how much all files may take, not counting the one being written; 0:
	// DefaultMaxBytes. The oldest go for it once that is there.
	MaxBytes int64
	// MaxRuns is how many runs are kept and listed; 0: defaultMaxRuns.
	MaxRuns int
	// Log; nil: discarded.
	Log *slog.Logger
}

// Defaults of Options.
const (
	DefaultMaxBytes = 256_000_000
	defaultMaxRuns  = 1000
)

// Names of files.
const (
	suffix    = ".json.gz"
	temporary = ".writing-"
)

// Errors of Store.
var (
	// errTooLarge: a report is larger than all may be together.
	errTooLarge = errors.New("report: larger than the directory may be")
	// errExists: a run of that id is there already.
	errExists = errors.New("report: this id is there already")
)

// Store keeps reports. All methods are safe for concurrent use.
type Store struct {
	writing sync.Mutex // one report at a time; taken before mu
	listed  bool       // the directory has been read; guarded by writing
	failing bool       // told that nothing can be kept; guarded by writing

	mu      sync.Mutex // guards what follows, which changes only while writing is held, too
	options Options
	index   []Header // newest first
	total   int64    // bytes of their files
	stats   Stats
}

// Stats count what a store has done since it was opened, and say what it holds.
type Stats struct {
	// Written reports, Failed ones, and Removed ones to make room.
	Written, Failed, Removed uint64
	// Dir is where reports are kept; empty: nowhere.
	Dir string
	// Runs are listed; their files take Bytes.
	Runs  int
	Bytes int64
	// Error is why the last report was not written, or the directory not read; nil if
	// it was.
	Error error
}

// Open makes a store and lists what is in its directory. A directory that cannot be used is no
// error: it is logged and counted, and tried again with each report.
func Open(o Options) *Store {
	s := &Store{}
	s.Configure(o)
	return s
}

// Configure puts other options in force, as a reload does.
func (s *Store) Configure(o Options) {
	o.MaxBytes, o.MaxRuns = cmp.Or(o.MaxBytes, DefaultMaxBytes), cmp.Or(o.MaxRuns, defaultMaxRuns)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	moved := o.Dir != s.options.Dir
	s.mu.Lock()
	s.options = o
	s.mu.Unlock()
	s.failing = s.failing && !moved
	if moved || !s.listed {
		s.scan()
	}
	s.mu.Lock()
	gone := s.excess(nil)
	s.mu.Unlock()
	s.remove(gone)
}

// scan lists the directory; writing is held.
func (s *Store) scan() {
	var index []Header
	var total int64
	var err error
	if s.options.Dir != "" {
		index, total, err = list(s.options)
	}
	// What was never in a file is still worth showing.
	for _, h := range s.index {
		if h.FileBytes == 0 && !has(index, h.ID) {
			index = append(index, h)
		}
	}
	slices.SortFunc(index, newestFirst)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index, s.total, s.stats.Error = index, total, err
	if s.listed = err == nil; !s.listed {
		s.tell(err)
	}
}

func has(index []Header, id string) bool {
	return slices.ContainsFunc(index, func(h Header) bool { return h.ID == id })
}

// tell logs when reports cannot be kept, and when they can again; writing is held.
func (s *Store) tell(err error) {
	switch log := s.options.Log; {
	case err != nil && !s.failing:
		log.Error("Reports of runs cannot be kept, will be tried again with the next", "dir", s.options.Dir, "err", err)
	case err == nil && s.failing:
		log.Info("Reports of runs are kept again", "dir", s.options.Dir)
	}
	s.failing = err != nil
}

func newestFirst(a, b Header) int { return strings.Compare(b.ID, a.ID) }

// incidentShare of both limits is the most that reports of kind Incident take.
const incidentShare = 4

// excess takes the oldest out of the index until there is space for h, nil for nothing, which is at the front of it;
// mu is held. Their files are still there.
func (s *Store) excess(h *Header) (gone []Header) {
	if h != nil && h.Kind == Incident {
		gone = s.oldest(func(o *Header) bool { return o.Kind == Incident }, s.options.MaxRuns/incidentShare, s.options.MaxBytes/incidentShare, h)
	}
	return append(gone, s.oldest(func(*Header) bool { return true }, s.options.MaxRuns, s.options.MaxBytes, h)...)
}

// oldest takes the oldest of those that are meant out of the index until they keep within the limits together
// with h, which may be nil.
func (s *Store) oldest(meant func(*Header) bool, runs int, bytes int64, h *Header) (gone []Header) {
	if h != nil {
		runs, bytes = runs-1, bytes-h.FileBytes
	}
	s.index = slices.DeleteFunc(s.index, func(o Header) bool {
		if !meant(&o) {
			return false
		}
		runs--
		bytes -= o.FileBytes
		if runs >= 0 && bytes >= 0 {
			return false
		}
		s.total -= o.FileBytes
		gone = append(gone, o)
		return true
	})
	return gone
}

// remove removes files; writing is held.
func (s *Store) remove(gone []Header) {
	var removed uint64
	for _, h := range gone {
		if h.FileBytes == 0 {
			continue
		}
		err := withRoot(s.options.Dir, func(r *os.Root) error { return r.Remove(h.ID + suffix) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			level := slog.LevelError
			if s.failing { // that is told
				level = slog.LevelDebug
			}
			s.options.Log.Log(context.Background(), level, "Report of a run cannot be removed", "dir", s.options.Dir, "id", h.ID, "err", err)
			continue
		}
		removed++
	}
	s.mu.Lock()
	s.stats.Removed += removed
	s.mu.Unlock()
}

// Write keeps a run: its header, and a body that encoding/json can write. The file
// appears whole or not at all; the oldest go until it has room. Whatever the error,
// the header is listed, unless the id is wrong or there already.
func (s *Store) Write(h Header, body any) error {
	if !validID.MatchString(h.ID) {
		return errID
	}
	h = h.bounded()
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.listed {
		s.scan() // it could not be read before
	}
	if has(s.index, h.ID) {
		return fmt.Errorf("%w: %s", errExists, h.ID)
	}
	o := s.options
	var size int64
	var err error
	if o.Dir != "" {
		size, err = file(o, h, body)
	}
	h = h.kept(size)
	s.mu.Lock()
	gone := s.excess(&h)
	i, _ := slices.BinarySearchFunc(s.index, h, newestFirst)
	s.index = slices.Insert(s.index, i, h)
	s.total += size
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
		s.tell(err)
	}
	s.remove(gone)
	return err
}

// List has the runs that are kept, newest first. The caller may keep it.
func (s *Store) List() []Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.index)
}

// Last has at most n runs of tests, newest first.
func (s *Store) Last(n int) (runs []Header) {
	for _, h := range s.List() {
		if h.Kind != Incident && len(runs) < n {
			runs = append(runs, h)
		}
	}
	return runs
}

// Incident has the newest incident of each path and probe.
func (s *Store) Incident() map[[2]string]*Header {
	newest := map[[2]string]*Header{}
	for _, h := range slices.Backward(s.List()) {
		if h.Kind == Incident {
			newest[[2]string{h.Path, h.Probe}] = &h
		}
	}
	return newest
}

// Stats may be called at any time.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Dir, stats.Runs, stats.Bytes = s.options.Dir, len(s.index), s.total
	return stats
}

// Open opens the file of a report, which is gzip. An id that is not kept is an
// error that wraps fs.ErrNotExist, one that cannot be an id among them.
func (s *Store) Open(id string) (io.ReadCloser, error) {
	if !validID.MatchString(id) {
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
