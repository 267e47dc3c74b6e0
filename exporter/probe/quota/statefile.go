package quota

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"oneway.example/exporter/core/atomicfile"
	"oneway.example/exporter/core/strictjson"
)

// stateVersion is the version of the file format; maxStateBytes exceeds any valid file.
const (
	stateVersion  = 1
	maxStateBytes = 16 << 20
)

// fileState is the content of the file.
type fileState struct {
	Version int `json:"version"`
	// Days is a list of day.
	Days json.RawMessage `json:"days"`
	// Sum is the CRC-32 (IEEE 802.3) of Days as encoded in the file; nil: a file written before
	// the field existed.
	Sum *uint32 `json:"crc32,omitempty"`
}

var errDamaged = errors.New("quota: damaged state file")

// readState reads and checks a file.
func readState(name string) (book, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // O_NONBLOCK: do not block on a named pipe
	if err != nil {
		return book{}, fmt.Errorf("quota: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return book{}, errors.Join(err, fmt.Errorf("quota: %s is not a regular file: remove it", name))
	}
	content, err := io.ReadAll(io.LimitReader(f, maxStateBytes+1))
	if err != nil {
		return book{}, fmt.Errorf("quota: %w", err)
	}
	return parseState(content)
}

// strictly decodes one JSON value: no unknown fields, nothing after it.
func strictly(content []byte, into any) error {
	if err := strictjson.Decode(content, into); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

func parseState(content []byte) (book, error) {
	if len(content) > maxStateBytes {
		return book{}, fmt.Errorf("%w: it has more than %d bytes", errDamaged, maxStateBytes)
	}
	var s fileState
	if err := strictly(content, &s); err != nil {
		return book{}, err
	}
	if s.Version != stateVersion {
		return book{}, fmt.Errorf("%w: version %d; it must be %d", errDamaged, s.Version, stateVersion)
	}
	if sum := crc32.ChecksumIEEE(s.Days); s.Sum != nil && *s.Sum != sum {
		return book{}, fmt.Errorf("%w: CRC-32 of its days is %d, want %d", errDamaged, sum, *s.Sum)
	}
	var days []*day
	if err := strictly(s.Days, &days); err != nil {
		return book{}, err
	}
	if err := checkDays(days); err != nil {
		return book{}, err
	}
	return book{days: days}, nil
}

func checkDays(days []*day) error {
	if len(days) > maxDays {
		return fmt.Errorf("%w: %d days; there must be at most %d", errDamaged, len(days), maxDays)
	}
	seen := map[string]bool{}
	for _, d := range days {
		if d == nil || d.Used == nil || seen[d.Date] {
			return fmt.Errorf("%w: a day is empty or a duplicate", errDamaged)
		}
		if _, err := time.Parse(time.DateOnly, d.Date); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		if d.Unknown != filepath.Base(d.Unknown) && d.Unknown != "" {
			return fmt.Errorf("%w: unknown is %q; it must be a file name without a directory", errDamaged, d.Unknown)
		}
		seen[d.Date] = true
		for name, used := range d.Used {
			if name == "" || used < 0 {
				return fmt.Errorf("%w: link %q has used %d", errDamaged, name, used)
			}
		}
	}
	return nil
}

// formatState encodes what parseState reads.
func formatState(days []*day) ([]byte, error) {
	raw, err := json.Marshal(days)
	if err != nil {
		return nil, err
	}
	sum := crc32.ChecksumIEEE(raw)
	content, err := json.Marshal(fileState{Version: stateVersion, Days: raw, Sum: &sum})
	return append(content, '\n'), err
}

// damagedSuffix is appended to the name of a damaged file; at most maxDamaged are kept.
const (
	damagedSuffix = ".damaged"
	maxDamaged    = 9
)

// renameDamaged renames a damaged file to a free name, and returns that.
func renameDamaged(name string) (aside string, err error) {
	for n := 1; n <= maxDamaged; n++ {
		aside = name + damagedSuffix
		if n > 1 {
			aside = fmt.Sprintf("%s-%d", aside, n)
		}
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return aside, os.Rename(name, aside)
		}
	}
	return "", fmt.Errorf("quota: there are %d damaged files already; remove %s and those numbered after it", maxDamaged, name+damagedSuffix)
}

// SetFile changes the file; empty: no file. Of each day the larger usage of the file and of
// memory counts. The directory is created if it does not exist. An error is logged, and Reserve
// fails for names with a limit until a save succeeds.
func (s *Store) SetFile(name string) {
	s.mu.Lock()
	same := s.file == name
	s.mu.Unlock()
	if same {
		return
	}
	s.saving.Lock()
	s.mu.Lock()
	s.file = name
	s.mu.Unlock()
	s.loaded, s.written = false, nil
	s.saving.Unlock()
	_ = s.Save() // Saved returns the error
}

// recentlyDamaged is the greatest age of a damaged file that can hold usage of today or yesterday.
const recentlyDamaged = 48 * time.Hour

var errMissing = errors.New("the file is missing, and a damaged one exists")

// load merges the usage in a file into the book; saving must be held. If the file is damaged, the
// usage of its last day and of today becomes unknown.
func (s *Store) load(name string) error {
	atomicfile.RemoveUnfinished(name)
	kept, damage := readState(name)
	aside := ""
	switch {
	case errors.Is(damage, errDamaged):
		var err error
		if aside, err = renameDamaged(name); err != nil {
			return errors.Join(damage, err)
		}
	case errors.Is(damage, fs.ErrNotExist):
		// A crash may have come between the renaming and the next write. An older damaged file has
		// no usage of today.
		if info, err := os.Lstat(name + damagedSuffix); err == nil && s.now().Sub(info.ModTime()) < recentlyDamaged {
			aside, damage = name+damagedSuffix, errMissing
		}
	case damage != nil:
		return damage
	}
	if aside != "" {
		if info, err := os.Lstat(aside); err == nil {
			kept.markUnknown(info.ModTime().In(s.now().Location()).Format(time.DateOnly), aside, damage)
		}
		kept.markUnknown(s.now().Format(time.DateOnly), aside, damage)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.book
	s.book = kept
	s.book.add(known)
	return nil
}

// unknownError reports that the usage of today is unknown.
type unknownError struct {
	// File is the path of the renamed damaged file.
	File string
	// Err is the damage found; nil: found before a restart.
	Err error
}

func (e *unknownError) Error() string {
	why := ""
	if e.Err != nil {
		why = fmt.Sprintf(" (%v)", e.Err)
	}
	return fmt.Sprintf("quota: the usage of today is unknown, as the state file was damaged%s; it was renamed to %s; quotas are refused until that is removed, or until tomorrow", why, e.File)
}

func (e *unknownError) Unwrap() error { return e.Err }

// saveTimeout is the longest that Save waits: the client of a load server waits 10 s for its reply.
const saveTimeout = 8 * time.Second

// errSlow is the result of a Save that the file system did not end.
var errSlow = fmt.Errorf("the file is not written after %v: the file system is slow or stands still", saveTimeout)

// round is one write of the file; err is valid once done is closed.
type round struct {
	done chan struct{}
	err  error
}

// Save writes the state file if there is one, as each reservation and each settlement does; a
// further call retries after an error. It returns an error after saveTimeout, and the file is written
// once the file system permits it. It logs the first of consecutive errors and the first success after them.
func (s *Store) Save() error {
	r := s.save()
	select {
	case <-r.done:
		return r.err
	case <-time.After(saveTimeout):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	default:
	}
	s.report(s.file, errSlow)
	return errSlow
}

// save begins a write of all changes up to now, or lets the one that waits have them.
func (s *Store) save() *round {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &round{done: make(chan struct{})}
		if !s.writing {
			s.writing = true
			go s.write()
		}
	}
	return s.next
}

// write writes until no change is left.
func (s *Store) write() {
	for {
		s.saving.Lock()
		s.mu.Lock()
		r, name, err := s.next, s.file, s.forbidden
		s.next, s.writing = nil, r != nil
		s.mu.Unlock()
		if r != nil && name != "" && err == nil {
			err = s.store(name)
		}
		s.saving.Unlock()
		if r == nil {
			return
		}
		s.mu.Lock()
		s.report(name, err)
		r.err = err
		close(r.done)
		s.mu.Unlock()
	}
}

// report keeps and logs the result of a write; mu must be held.
func (s *Store) report(name string, err error) {
	before := s.unsaved
	unknown, lost := errors.AsType[*unknownError](err)
	switch {
	case name == "":
	case err == nil && before != nil:
		s.log.Info("The usage of load tests today is kept again", "file", name)
	case lost && !errors.As(before, new(*unknownError)):
		s.log.Error("The usage of load tests today is not known, the file was damaged; load tests with a quota are refused until tomorrow, or until the renamed file is removed",
			"file", name, "remove", unknown.File, "err", unknown.Err)
	case err != nil && before == nil:
		s.log.Error("The usage of load tests today is not kept; load tests with a quota are refused", "file", name, "err", err)
	}
	s.unsaved = err
}

// Keep saves again if the last save failed, and if the file is not the one that was written last: it was removed, or replaced by
// another one, whose usage counts too. Call it from time to time, such as every metric.QuotaSaveInterval.
func (s *Store) Keep() {
	s.mu.Lock()
	name := s.file
	s.mu.Unlock()
	if !s.saving.TryLock() {
		return // it is written
	}
	now, err := os.Stat(name)
	gone := s.written != nil && (err != nil || !unchanged(now, s.written))
	if gone {
		s.log.Warn("The file with the usage of load tests today was removed or replaced; it is written again", "file", name)
		s.written, s.loaded = nil, err != nil
	}
	s.saving.Unlock()
	if gone || s.Saved() != nil {
		_ = s.Save() // Saved returns the error
	}
}

// unchanged compares times as well: the next file may have the inode of a removed one.
func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// Forbid lets each save fail with this error, since another process uses the directory; nil permits it again.
func (s *Store) Forbid(why error) {
	s.mu.Lock()
	same := errors.Is(s.forbidden, why)
	s.forbidden = why
	s.mu.Unlock()
	if !same {
		_ = s.Save() // Saved returns the error
	}
}

// Saved returns why the usage is not in the state file or is unknown since the file was damaged;
// nil if it is saved or there is no file.
func (s *Store) Saved() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsaved != nil || s.file == "" {
		return s.unsaved
	}
	return s.known()
}

// known returns an *unknownError if the usage of today is unknown; mu must be held.
func (s *Store) known() error {
	d := s.today()
	if d.Unknown == "" {
		return nil
	}
	return &unknownError{File: filepath.Join(filepath.Dir(s.file), d.Unknown), Err: d.damage}
}

// store merges the file into memory once and then writes it; saving must be held.
func (s *Store) store(name string) error {
	if !s.loaded {
		if err := s.load(name); err != nil {
			return err
		}
		s.loaded = true
	}
	s.mu.Lock()
	kept := s.book.unknown()
	s.mu.Unlock()
	removed := slices.DeleteFunc(kept, func(file string) bool {
		_, err := os.Lstat(filepath.Join(filepath.Dir(name), file))
		return !errors.Is(err, fs.ErrNotExist)
	})
	s.mu.Lock()
	s.book.markKnown(removed)
	content, err := s.content()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	if err := s.replace(name, content, 0o600); err != nil {
		return err
	}
	s.written, _ = os.Stat(name) // nil: Keep does not look for it
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known()
}

// content encodes the file, with reservations as usage; mu must be held.
func (s *Store) content() ([]byte, error) {
	today := s.today()
	var days []*day
	for _, d := range s.book.days {
		used := maps.Clone(d.Used)
		if d == today {
			for name, n := range s.reserved {
				used[name] = add(used[name], n)
			}
		}
		days = append(days, &day{Date: d.Date, Used: used, Unknown: d.Unknown})
	}
	return formatState(days)
}
