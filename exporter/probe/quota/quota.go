// Package quota accounts for daily data quotas, of links and of tokens. A Store reserves bytes
// before they are sent and then counts those that were sent. It keeps this in a file across
// restarts and crashes. Neither a stepped clock nor a damaged file renews a quota.
package quota

import (
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/core/atomicfile"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/calendar"
)

// Options are a Store's settings. The zero value is valid: no file.
type Options struct {
	// File keeps the usage of each day across restarts; empty: no file.
	File string
	// Now is the real-time clock; its location decides when a day begins; nil: time.Now.
	Now func() time.Time
	// Log; nil: discarded.
	Log *slog.Logger
}

// Store accounts for the bytes used today by name. The caller knows the limits. All methods are
// safe for concurrent use. Make one with New.
type Store struct {
	now     func() time.Time
	log     *slog.Logger
	replace func(name string, content []byte, mode fs.FileMode) error

	saving  sync.Mutex  // one writer of the file; taken before mu
	loaded  bool        // the file has been read; guarded by saving
	written os.FileInfo // the file as it was written last; nil: it was not; guarded by saving

	mu        sync.Mutex
	file      string
	forbidden error  // why nothing may be written; nil: it may
	unsaved   error  // of the last write; nil if it succeeded
	writing   bool   // write runs
	next      *round // the next write, not begun
	reserved  map[string]int64
	book      book
}

// New makes a store and reads its file. If the file cannot be read or written, it logs that, and
// Reserve fails for every name with a limit until it can. A damaged or empty file is renamed, the
// new name logged, and Reserve fails for every name with a limit until the next local midnight or
// until the renamed file is removed.
func New(o Options) *Store {
	s := &Store{now: o.Now, log: o.Log, replace: atomicfile.Replace, reserved: map[string]int64{}}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.SetFile(o.File)
	return s
}

// Usage is today's use of one name, in bytes.
type Usage struct {
	// Limit is the quota of a day; 0: none.
	Limit int64
	// Used was sent since local midnight; Reserved is set aside for the runs in
	// progress.
	Used, Reserved int64
	// Left is Limit less Used and Reserved, at least 0; math.MaxInt64 without a
	// limit.
	Left int64
}

// ExceededError reports that fewer bytes are left today than requested.
type ExceededError struct {
	Name string
	// Left and Need are the bytes left and requested.
	Left, Need int64
	// Renewed is the next local midnight.
	Renewed time.Time
}

// Error names the bytes left, the bytes needed and the time of renewal.
func (e *ExceededError) Error() string {
	left, need := unit.DistinctBytes(e.Left, e.Need)
	return fmt.Sprintf("quota: the data quota of %s (quota_bytes under links in the agent's configuration) has %s left, and the run may need %s; it is renewed at %s", e.Name, left, need, e.Renewed.Format(time.RFC3339))
}

// UnsavedError reports that a reservation cannot be saved, so that a restart would lose it, or that
// the earlier use of the day is unknown.
type UnsavedError struct {
	Name string
	// Err is the error of reading or writing the file, or the damage found.
	Err error
}

// Error names the cause and the condition for success.
func (e *UnsavedError) Error() string {
	return fmt.Sprintf("quota: the data quota of %s cannot be saved, or is not known: %v; the state file must be readable, writable and undamaged", e.Name, e.Err)
}

// Unwrap returns Err.
func (e *UnsavedError) Unwrap() error { return e.Err }

// Reservation is a part of a quota reserved for one run.
type Reservation struct {
	store *Store
	name  string
	bytes int64 // still reserved; guarded by store.mu
	done  bool  // settled; guarded by store.mu
}

// Usage returns today's use of name under a limit; 0: none.
func (s *Store) Usage(name string, limit int64) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage(name, limit)
}

// usage is Usage; mu must be held.
func (s *Store) usage(name string, limit int64) Usage {
	u := Usage{Limit: limit, Used: s.today().Used[name], Reserved: s.reserved[name], Left: math.MaxInt64}
	if limit > 0 {
		u.Left = max(0, limit-add(u.Used, u.Reserved))
	}
	return u
}

// Names returns the names with bytes used or reserved today, sorted.
func (s *Store) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.AppendSeq(slices.Collect(maps.Keys(s.today().Used)), maps.Keys(s.reserved))
	slices.Sort(names)
	return slices.Compact(names)
}

// add returns a+b, at most math.MaxInt64; both must not be negative.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Reserve reserves bytes, the most that a run can send, of name's quota under limit; 0: none. The
// error is an *ExceededError if fewer are left, and an *UnsavedError if there is a limit and the
// file cannot be written, or not within saveTimeout. Every reservation must be settled. Until then the file counts it as
// used, as the bytes sent by a run that a crash interrupted are unknown.
func (s *Store) Reserve(name string, limit, bytes int64) (*Reservation, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("quota: reserve %d bytes of %s: the number must not be negative", bytes, name)
	}
	if limit > 0 && s.Saved() != nil {
		if err := s.Save(); err != nil { // the use of today may be unknown
			return nil, &UnsavedError{Name: name, Err: err}
		}
	}
	s.mu.Lock()
	if u := s.usage(name, limit); bytes > u.Left {
		renewed := calendar.NextMidnight(s.now())
		s.mu.Unlock()
		return nil, &ExceededError{Name: name, Left: u.Left, Need: bytes, Renewed: renewed}
	}
	s.reserved[name] = add(s.reserved[name], bytes)
	s.mu.Unlock()
	r := &Reservation{store: s, name: name, bytes: bytes}
	if limit <= 0 {
		s.save()
		return r, nil
	}
	if err := s.Save(); err != nil {
		r.end(0)
		s.save()
		return nil, &UnsavedError{Name: name, Err: err}
	}
	return r, nil
}

// Settle ends the reservation with the bytes that were sent, which may exceed those reserved.
// They count for the day of settling: a run across midnight stays reserved in the new day until
// then, so that neither day exceeds its quota. Settling again does nothing, nor does settling a
// nil Reservation.
func (r *Reservation) Settle(used int64) {
	if r != nil && r.end(used) {
		_ = r.store.Save() // the file has the whole reservation; Saved returns the error
	}
}

// end settles in memory; false if it was settled before.
func (r *Reservation) end(used int64) bool {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.done {
		return false
	}
	r.done = true
	if used > 0 {
		today := s.today()
		today.Used[r.name] = add(today.Used[r.name], used)
	}
	if s.reserved[r.name] -= r.bytes; s.reserved[r.name] <= 0 {
		delete(s.reserved, r.name)
	}
	return true
}

// maxDays is the most dates in the book.
const maxDays = 8

// day is the usage of one date of the local calendar.
type day struct {
	// Date in the format of time.DateOnly; it sorts as text.
	Date string `json:"date"`
	// Used bytes (IP), by name.
	Used map[string]int64 `json:"used"`
	// Unknown is the name of the renamed damaged file in the same directory; Used is then a lower
	// bound. Empty: Used is exact.
	Unknown string `json:"unknown,omitempty"`

	damage error // the damage found; nil: found before a restart
}

// book is the usage by date, that of the present date last. It stores maxDays dates, so that
// a clock that is stepped over midnight and back, or that is wrong between boot and the first
// synchronization, does not renew a quota:
//
//   - a known date keeps its usage;
//   - a new date later than the last begins with no usage;
//   - a new date earlier than the last copies the usage of the last. Its next midnight renews
//     the quota.
type book struct{ days []*day }

// at returns the day of a date; it becomes the last.
func (b *book) at(date string) *day {
	last := len(b.days) - 1
	if last >= 0 && b.days[last].Date == date {
		return b.days[last]
	}
	today := &day{Date: date, Used: map[string]int64{}}
	if i := slices.IndexFunc(b.days, func(d *day) bool { return d.Date == date }); i >= 0 {
		today = b.days[i]
		b.days = slices.Delete(b.days, i, i+1)
	} else if last >= 0 && date < b.days[last].Date {
		before := b.days[last]
		today.Used, today.Unknown, today.damage = maps.Clone(before.Used), before.Unknown, before.damage
	}
	b.days = append(b.days, today)
	if len(b.days) > maxDays {
		b.days = slices.Delete(b.days, 0, len(b.days)-maxDays)
	}
	return today
}

// add merges a later book: of each day and name the larger usage counts.
func (b *book) add(later book) {
	for _, d := range later.days {
		page := b.at(d.Date)
		for name, used := range d.Used {
			page.Used[name] = max(page.Used[name], used)
		}
		if d.Unknown != "" {
			page.Unknown, page.damage = d.Unknown, d.damage
		}
	}
}

// markUnknown marks the usage of a date as unknown. kept is the path of the renamed damaged file.
func (b *book) markUnknown(date, kept string, damage error) {
	d := b.at(date)
	d.Unknown, d.damage = filepath.Base(kept), damage
}

// unknown returns the names of the renamed damaged files.
func (b *book) unknown() (files []string) {
	for _, d := range b.days {
		if d.Unknown != "" && !slices.Contains(files, d.Unknown) {
			files = append(files, d.Unknown)
		}
	}
	return files
}

// markKnown marks the usage of days as exact whose damaged file the operator has removed.
func (b *book) markKnown(removed []string) {
	for _, d := range b.days {
		if slices.Contains(removed, d.Unknown) {
			d.Unknown, d.damage = "", nil
		}
	}
}

// today returns the present day; mu must be held.
func (s *Store) today() *day { return s.book.at(s.now().Format(time.DateOnly)) }
