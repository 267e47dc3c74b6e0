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
	// Dir is created if it does not exist; empty: no files. One Store of one process owns it.
	// Other files in it are neither removed nor counted.
	Dir string
	// MaxBytes is the limit of all files together, without the one being written; 0:
	// DefaultMaxBytes. The oldest are removed after the new one is complete.
	MaxBytes int64
	// MaxRuns is the limit of runs kept and listed; 0: DefaultMaxRuns.
	MaxRuns int
	// Log; nil: discarded.
	Log *slog.Logger
}

// Defaults of Options.
const (
	DefaultMaxBytes = 256_000_000
	DefaultMaxRuns  = 1000
)

// Names of files.
const (
	suffix    = ".json.gz"
	temporary = ".writing-"
)

// Errors of Store.
var (
	// errTooLarge: one report exceeds the limit of the directory.
	errTooLarge = errors.New("report: the report exceeds the byte limit of the directory")
	// errExists: a run with this ID exists.
	errExists = errors.New("report: the id exists")
)

// Store stores reports. All methods are safe for concurrent use.
type Store struct {
	writing sync.Mutex // one report at a time; taken before mu
	listed  bool       // the directory has been read; guarded by writing
	failing bool       // the failure is logged; guarded by writing

	mu      sync.Mutex // guards the fields below; a change also needs writing
	options Options
	index   []Header // newest first
	total   int64    // bytes of their files
	stats   Stats
}

// Stats are counters since the store was opened, and its present content.
type Stats struct {
	// Written and Failed reports, and those Removed to stay within the limits.
	Written, Failed, Removed uint64
	// Dir is the directory of the files; empty: none.
	Dir string
	// Runs is the number of listed runs, Bytes the size of their files.
	Runs  int
	Bytes int64
	// Error of the last write of a report or read of the directory; nil if it succeeded.
	Error error
}

// Open makes a store and lists its directory. A directory that cannot be used is logged and
// counted, and retried with each report.
func Open(o Options) *Store {
	s := &Store{}
	s.Configure(o)
	return s
}

// Configure sets new options, as a reload does.
func (s *Store) Configure(o Options) {
	o.MaxBytes, o.MaxRuns = cmp.Or(o.MaxBytes, DefaultMaxBytes), cmp.Or(o.MaxRuns, DefaultMaxRuns)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if !s.writing.TryLock() {
		s.mu.Lock()
		now := s.options
		s.mu.Unlock()
		if now.Dir == o.Dir && now.MaxBytes == o.MaxBytes && now.MaxRuns == o.MaxRuns {
			return // a reload does not wait for a disk that stands still
		}
		s.writing.Lock()
	}
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
	excess := s.removeExcess(nil)
	s.mu.Unlock()
	s.remove(excess)
}

// scan lists the directory; writing must be held.
func (s *Store) scan() {
	var index []Header
	var total int64
	var err error
	if s.options.Dir != "" {
		index, total, err = list(s.options)
	}
	// Keep headers that have no file.
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
		s.logFailure(err)
	}
}

// Rescan lists the directory again, after it was removed or replaced. Runs whose reports are gone stay in the list, without them.
func (s *Store) Rescan() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	for i := range s.index {
		s.index[i].FileBytes, s.index[i].Report = 0, ""
	}
	s.mu.Unlock()
	s.scan()
}

func has(index []Header, id string) bool {
	return slices.ContainsFunc(index, func(h Header) bool { return h.ID == id })
}

// logFailure logs the first of consecutive failures and the first success after them; writing must be held.
func (s *Store) logFailure(err error) {
	switch log := s.options.Log; {
	case err != nil && !s.failing:
		log.Error("Reports cannot be written; the next report is tried again", "dir", s.options.Dir, "err", err)
	case err == nil && s.failing:
		log.Info("Reports are written again", "dir", s.options.Dir)
	}
	s.failing = err != nil
}

func newestFirst(a, b Header) int { return strings.Compare(b.ID, a.ID) }

// IncidentShare is the divisor of both limits for reports of kind Incident, which use at most this part of them.
const IncidentShare = 4

// removeExcess removes the oldest headers from the index until h fits at its front; a nil h needs no space. It
// leaves their files; mu must be held.
func (s *Store) removeExcess(h *Header) (excess []Header) {
	if h != nil && h.Kind == Incident {
		excess = s.oldest(func(o *Header) bool { return o.Kind == Incident }, s.options.MaxRuns/IncidentShare, s.options.MaxBytes/IncidentShare, h)
	}
	return append(excess, s.oldest(func(*Header) bool { return true }, s.options.MaxRuns, s.options.MaxBytes, h)...)
}

// oldest removes from the index the oldest headers for which meant is true, until those that are left and h
// are within the limits. h may be nil.
func (s *Store) oldest(meant func(*Header) bool, runs int, bytes int64, h *Header) (excess []Header) {
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
		excess = append(excess, o)
		return true
	})
	return excess
}

// remove removes files; writing must be held.
func (s *Store) remove(excess []Header) {
	var removed uint64
	for _, h := range excess {
		if h.FileBytes == 0 {
			continue
		}
		err := withRoot(s.options.Dir, func(r *os.Root) error { return r.Remove(h.ID + suffix) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			level := slog.LevelError
			if s.failing { // already logged as an error
				level = slog.LevelDebug
			}
			s.options.Log.Log(context.Background(), level, "Report cannot be removed", "dir", s.options.Dir, "id", h.ID, "err", err)
			continue
		}
		removed++
	}
	s.mu.Lock()
	s.stats.Removed += removed
	s.mu.Unlock()
}

// Write stores a run: its header, and a body that encoding/json can encode. The file is written
// atomically; then the oldest are removed until all are within the limits. On any error the header
// is listed, unless its ID is invalid or exists.
func (s *Store) Write(h Header, body any) error {
	if !validID.MatchString(h.ID) {
		return errID
	}
	h = h.bounded()
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.listed {
		s.scan() // the directory could not be read before
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
	excess := s.removeExcess(&h)
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
	case err != nil && !errors.As(err, new(syscall.Errno)): // the report is at fault, not the directory
		o.Log.Error("Report not written", "id", h.ID, "dir", o.Dir, "err", err)
	case o.Dir != "":
		s.logFailure(err)
	}
	s.remove(excess)
	return err
}

// List returns the runs, newest first. The caller owns the slice.
func (s *Store) List() []Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.index)
}

// Probe names a probe of a path.
type Probe struct{ Path, Probe string }

// Newest returns the newest run, and the newest incident report, of each probe.
func (s *Store) Newest() (runs, incidents map[Probe]*Header) {
	runs, incidents = map[Probe]*Header{}, map[Probe]*Header{}
	for _, h := range slices.Backward(s.List()) {
		of := runs
		if h.Kind == Incident {
			of = incidents
		}
		of[Probe{h.Path, h.Probe}] = &h
	}
	return runs, incidents
}

// Stats returns the present counters and content.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Dir, stats.Runs, stats.Bytes = s.options.Dir, len(s.index), s.total
	return stats
}

// Open opens the gzip file of a report. For an ID that is invalid or not stored the error wraps
// fs.ErrNotExist.
func (s *Store) Open(id string) (io.ReadCloser, error) {
	if !validID.MatchString(id) {
		return nil, fmt.Errorf("report: open run %.80q: %w", id, fs.ErrNotExist)
	}
	s.mu.Lock()
	dir := s.options.Dir
	s.mu.Unlock()
	if dir == "" {
		return nil, fmt.Errorf("report: open run %s: no directory is configured: %w", id, fs.ErrNotExist)
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
