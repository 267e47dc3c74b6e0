// Package quota keeps what has been used of quotas of a day: of a link's, of a token's. A Store
// sets bytes aside before they are moved, and counts what was moved in truth. It survives
// restarts and crashes, by a file, and it gives nothing anew where the clock is stepped or the
// file is damaged.
package quota

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/calendar"
)

// Options are what a Store is made of. The zero value is right: nothing is kept.
type Options struct {
	// File keeps what each day has used across restarts; empty: not kept.
	File string
	// Now is the real-time clock, in whose location days begin; nil: time.Now.
	Now func() time.Time
	// Log; nil: discarded.
	Log *slog.Logger
}

// Store keeps what was used today under each name, in bytes. Limits are its caller's. All
// methods are safe for concurrent use. Make one with New.
type Store struct {
	now func() time.Time
	log *slog.Logger

	saving sync.Mutex // one writer of the file; taken before mu
	loaded bool       // what the file knew has been taken over; guarded by saving

	mu       sync.Mutex
	file     string
	unsaved  error // why it was not written; nil: it was
	reserved map[string]int64
	book     book
}

// New makes a store and reads its file. A file that cannot be read or written is no error: it is
// logged, and nothing that has a limit is given out until it can be. Nor is one that is damaged,
// an empty one too: it is kept under a name that the log tells, and nothing that has a limit is
// given out until the next local midnight, or until that file is removed.
func New(o Options) *Store {
	s := &Store{now: o.Now, log: o.Log, reserved: map[string]int64{}}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.SetFile(o.File)
	return s
}

// Usage is what was done today under one name, in bytes.
type Usage struct {
	// Limit is the quota of a day; 0: none.
	Limit int64
	// Used has been moved since local midnight, Reserved is set aside for the runs
	// under way.
	Used, Reserved int64
	// Left is Limit without Used and Reserved, at least 0; math.MaxInt64 without a
	// limit.
	Left int64
}

// ExceededError says that a quota does not suffice today.
type ExceededError struct {
	Name string
	// Left is what is left, Need what was asked for, in bytes.
	Left, Need int64
	// Renewed is the next local midnight.
	Renewed time.Time
}

// Error says what is missing, and when there is more.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("quota: the data quota of %s has %d bytes left, %d are needed; it is renewed at %s",
		e.Name, e.Left, e.Need, e.Renewed.Format(time.RFC3339))
}

// UnsavedError says that what a run would use cannot be saved, so that after a restart the
// quota would not know of it; or that it is not known what was used before.
type UnsavedError struct {
	Name string
	// Err is what the file's reading or writing has met, or how it was damaged.
	Err error
}

// Error says what is to be mended.
func (e *UnsavedError) Error() string {
	return fmt.Sprintf("quota: the data quota of %s cannot be saved, or is not known: %v; the state file must be readable, writable and whole", e.Name, e.Err)
}

// Unwrap is the cause.
func (e *UnsavedError) Unwrap() error { return e.Err }

// Reservation is a part of a quota that is set aside for one run.
type Reservation struct {
	store *Store
	name  string
	bytes int64 // what is still set aside; guarded by store.mu
	done  bool  // the same
}

// Usage says what has been used of name today, under a limit; 0: none.
func (s *Store) Usage(name string, limit int64) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage(name, limit)
}

// usage is Usage; mu is held.
func (s *Store) usage(name string, limit int64) Usage {
	u := Usage{Limit: limit, Used: s.today().Used[name], Reserved: s.reserved[name], Left: math.MaxInt64}
	if limit > 0 {
		u.Left = max(0, limit-add(u.Used, u.Reserved))
	}
	return u
}

// Names are those of which something is used or set aside today, sorted.
func (s *Store) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.AppendSeq(slices.Collect(maps.Keys(s.today().Used)), maps.Keys(s.reserved))
	slices.Sort(names)
	return slices.Compact(names)
}

// add is a sum that stops at the largest number.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Reserve sets bytes of name's quota under a limit aside, the most that a run can move, before
// it begins; a limit of 0 is none. The error is an *ExceededError if they are not left, and an
// *UnsavedError if there is a limit and the file cannot be written. Every reservation
// must be settled. Until then it counts as used in the file: of a run that a
// crash has cut nobody knows what it has moved.
func (s *Store) Reserve(name string, limit, bytes int64) (*Reservation, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("quota: %d bytes of %s cannot be set aside; it must not be negative", bytes, name)
	}
	if limit > 0 && s.Saved() != nil {
		if err := s.Save(); err != nil { // what was used may not even be known
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
	if err := s.Save(); err != nil && limit > 0 {
		r.end(0)
		return nil, &UnsavedError{Name: name, Err: err}
	}
	return r, nil
}

// Settle ends the reservation: used bytes were moved in truth, which may be more
// than were set aside. They count for the day of settling: a run across midnight
// stays set aside in the new day until then, so that neither day's quota is
// overrun. Settling again does nothing, nor does settling nil.
func (r *Reservation) Settle(used int64) {
	if r != nil && r.end(used) {
		_ = r.store.Save() // what was set aside is saved already, and Saved tells
	}
}

// end counts it in memory; false: it has ended before.
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

// maxDays is how many dates the book remembers.
const maxDays = 8

// day is what was used at one date of the local calendar.
type day struct {
	// Date is like 2026-11-21, so that dates sort as text.
	Date string `json:"date"`
	// Used is in IP bytes, by name.
	Used map[string]int64 `json:"used"`
	// Unknown is the file, beside the state file, that is kept of one that was damaged, so
	// that Used may be too little; empty: it is not.
	Unknown string `json:"unknown,omitempty"`

	damage error // what was wrong with it; nil: a life before knew
}

// book has what was used by date, the date of now last. It remembers some dates,
// so that a clock that is stepped over midnight and back, or that is wrong between
// boot and the first reply of a time server, does not renew a quota:
//
//   - a date that is known has what it had;
//   - a new date later than the last begins with nothing used;
//   - a new date earlier than the last takes over what was used: a clock that goes
//     back gives nothing. Its next midnight renews the quota as ever.
type book struct{ days []*day }

// at returns the page of a date.
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

// add takes over what another book has of more, as if its days came after.
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

// lose says that nobody knows what was used at a date, since a file was damaged that is
// kept under a name.
func (b *book) lose(date, kept string, damage error) {
	d := b.at(date)
	d.Unknown, d.damage = filepath.Base(kept), damage
}

// unknown are the files that are kept of damaged ones.
func (b *book) unknown() (files []string) {
	for _, d := range b.days {
		if d.Unknown != "" && !slices.Contains(files, d.Unknown) {
			files = append(files, d.Unknown)
		}
	}
	return files
}

// believe takes what is known of a day as all there was, since somebody has removed what
// was kept of the damaged file.
func (b *book) believe(removed []string) {
	for _, d := range b.days {
		if slices.Contains(removed, d.Unknown) {
			d.Unknown, d.damage = "", nil
		}
	}
}

// today is the page of now; mu is held.
func (s *Store) today() *day { return s.book.at(s.now().Format(time.DateOnly)) }
