package quota

import (
	"bytes"
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

	"oneway.example/exporter/atomicfile"
)

// stateVersion is that of the file's format, maxStateBytes more than it can grow to.
const (
	stateVersion  = 1
	maxStateBytes = 16 << 20
)

// fileState is the file's content.
type fileState struct {
	Version int `json:"version"`
	// Days are a list of day.
	Days json.RawMessage `json:"days"`
	// Sum is the CRC-32 (IEEE 802.3) of Days as they stand in the file; nil: a file from
	// before there was one.
	Sum *uint32 `json:"crc32,omitempty"`
}

var errDamaged = errors.New("quota: damaged state file")

// readState reads and checks a file.
func readState(name string) (book, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it waits for no pipe
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

// strictly decodes all of a JSON text, which may have no other fields.
func strictly(content []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows its end", errDamaged)
	}
	return nil
}

func parseState(content []byte) (book, error) {
	if len(content) > maxStateBytes {
		return book{}, fmt.Errorf("%w: it is larger than %d bytes", errDamaged, maxStateBytes)
	}
	var s fileState
	if err := strictly(content, &s); err != nil {
		return book{}, err
	}
	if s.Version != stateVersion {
		return book{}, fmt.Errorf("%w: version %d; it must be %d", errDamaged, s.Version, stateVersion)
	}
	if sum := crc32.ChecksumIEEE(s.Days); s.Sum != nil && *s.Sum != sum {
		return book{}, fmt.Errorf("%w: its days have the CRC-32 %d, and not the %d that was written", errDamaged, sum, *s.Sum)
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
		return fmt.Errorf("%w: %d days; there must be %d at the most", errDamaged, len(days), maxDays)
	}
	seen := map[string]bool{}
	for _, d := range days {
		if d == nil || d.Used == nil || seen[d.Date] {
			return fmt.Errorf("%w: a day is empty or there twice", errDamaged)
		}
		if _, err := time.Parse(time.DateOnly, d.Date); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		if d.Unknown != filepath.Base(d.Unknown) && d.Unknown != "" {
			return fmt.Errorf("%w: %q is no file beside it", errDamaged, d.Unknown)
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

// formatState is what parseState reads.
func formatState(days []*day) ([]byte, error) {
	raw, err := json.Marshal(days)
	if err != nil {
		return nil, err
	}
	sum := crc32.ChecksumIEEE(raw)
	content, err := json.Marshal(fileState{Version: stateVersion, Days: raw, Sum: &sum})
	return append(content, '\n'), err
}

// damagedSuffix is what a damaged file's name gets, maxDamaged how many are kept.
const (
	damagedSuffix = ".damaged"
	maxDamaged    = 9
)

// setAside gives a damaged file a name that nothing has, and returns that.
func setAside(name string) (aside string, err error) {
	for n := 1; n <= maxDamaged; n++ {
		aside = name + damagedSuffix
		if n > 1 {
			aside = fmt.Sprintf("%s-%d", aside, n)
		}
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return aside, os.Rename(name, aside)
		}
	}
	return "", fmt.Errorf("quota: %d damaged files are kept already; remove %s and those after it", maxDamaged, name+damagedSuffix)
}

// SetFile keeps the days' usage in another file; empty: nowhere. If that file
// has more of a day than is known, it is believed. The directory is made if need
// be. What goes wrong is logged, and no quota is given out until it is mended.
func (s *Store) SetFile(name string) {
	s.saving.Lock()
	s.mu.Lock()
	same := s.file == name
	s.file = name
	s.mu.Unlock()
	s.loaded = s.loaded && same
	s.saving.Unlock()
	if !same {
		_ = s.Save() // Saved tells
	}
}

// recentlyDamaged is how old a file may be whose last day is today or yesterday.
const recentlyDamaged = 48 * time.Hour

var errMissing = errors.New("the file is missing, and one that was damaged is kept")

// load takes over what a file knows; saving is held. Of a damaged one nobody knows what was
// used on its last day, nor today.
func (s *Store) load(name string) error {
	atomicfile.RemoveUnfinished(name)
	kept, damage := readState(name)
	aside := ""
	switch {
	case errors.Is(damage, errDamaged):
		var err error
		if aside, err = setAside(name); err != nil {
			return errors.Join(damage, err)
		}
	case errors.Is(damage, fs.ErrNotExist):
		// It may have been put aside, and a crash came before there was another. One that is
		// older knows nothing of today.
		if info, err := os.Lstat(name + damagedSuffix); err == nil && s.now().Sub(info.ModTime()) < recentlyDamaged {
			aside, damage = name+damagedSuffix, errMissing
		}
	case damage != nil:
		return damage
	}
	if aside != "" {
		if info, err := os.Lstat(aside); err == nil {
			kept.lose(info.ModTime().In(s.now().Location()).Format(time.DateOnly), aside, damage)
		}
		kept.lose(s.now().Format(time.DateOnly), aside, damage)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.book
	s.book = kept
	s.book.add(known)
	return nil
}

// unknownError says that nobody knows what was used today.
type unknownError struct {
	// File is what is kept of the damaged file.
	File string
	// Err is what was wrong with it; nil: that was in a life before.
	Err error
}

func (e *unknownError) Error() string {
	why := ""
	if e.Err != nil {
		why = fmt.Sprintf(" (%v)", e.Err)
	}
	return fmt.Sprintf("quota: what was used today is not known, the state file was damaged%s; it is kept as %s: until tomorrow, or until that is removed, nothing is given out", why, e.File)
}

func (e *unknownError) Unwrap() error { return e.Err }

// Save writes the state file, if there is to be one, as each reservation and each
// settlement does; calling it again is of use where it has failed. A failure is logged
// when it begins and when it ends.
func (s *Store) Save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	name, before := s.file, s.unsaved
	s.mu.Unlock()
	var err error
	if name != "" {
		err = s.store(name)
	}
	unknown, lost := errors.AsType[*unknownError](err)
	switch {
	case name == "":
	case err == nil && before != nil:
		s.log.Info("What load tests have used today is kept again", "file", name)
	case lost && !errors.As(before, new(*unknownError)):
		s.log.Error("What load tests have used today is not known, the file was damaged: what has a quota is refused until tomorrow, or until you remove what is kept of it",
			"file", name, "remove", unknown.File, "err", unknown.Err)
	case err != nil && before == nil:
		s.log.Error("What load tests use today is not kept, and what has a quota is refused", "file", name, "err", err)
	}
	s.mu.Lock()
	s.unsaved = err
	s.mu.Unlock()
	return err
}

// Saved is why what the days have used is not in the state file, or not known since that was
// damaged; nil: it is, or there is to be none.
func (s *Store) Saved() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsaved != nil || s.file == "" {
		return s.unsaved
	}
	return s.known()
}

// known is an *unknownError, or nil if it is known what was used today; mu is held.
func (s *Store) known() error {
	d := s.today()
	if d.Unknown == "" {
		return nil
	}
	return &unknownError{File: filepath.Join(filepath.Dir(s.file), d.Unknown), Err: d.damage}
}

// store brings the file and what is known together; saving is held.
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
	s.book.believe(removed)
	content, err := s.content()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	if err := atomicfile.Replace(name, content, 0o600); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known()
}

// content is the file's, with what is set aside as used; mu is held.
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
