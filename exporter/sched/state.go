package sched

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// stateVersion is that of the file's format, maxStateBytes more than it can grow to.
const (
	stateVersion  = 1
	maxStateBytes = 16 << 20
)

// fileState is the file's content.
type fileState struct {
	Version int    `json:"version"`
	Days    []*day `json:"days"`
}

// SetStateFile keeps the days' usage in another file; empty: nowhere. If that file
// has more of a day than is known, it is believed. The directory is made if need
// be. What goes wrong is logged, and no budget is given out until it is mended.
func (l *Links) SetStateFile(name string) {
	l.saving.Lock()
	l.mu.Lock()
	same := l.file == name
	l.file = name
	l.mu.Unlock()
	l.loaded = l.loaded && same
	l.saving.Unlock()
	if !same {
		_ = l.Save() // Saved tells
	}
}

// load takes over what a file knows; saving is held. A damaged one knows nothing, which
// is logged.
func (l *Links) load(name string) error {
	kept, err := readState(name)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, errDamaged):
		// Kept aside for whoever wants to know; if that fails, it is overwritten.
		_ = os.Rename(name, name+".damaged")
		l.log.Error("What heavy tests have used today is not known, the file is damaged; their budgets begin anew", "file", name, "err", err)
	default:
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.book
	l.book = kept
	l.book.add(known)
	return nil
}

var errDamaged = errors.New("sched: damaged state file")

// readState reads and checks a file.
func readState(name string) (book, error) {
	f, err := os.Open(name)
	if err != nil {
		return book{}, fmt.Errorf("sched: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxStateBytes+1))
	if err != nil {
		return book{}, fmt.Errorf("sched: %w", err)
	}
	return parseState(content)
}

func parseState(content []byte) (book, error) {
	if len(content) > maxStateBytes {
		return book{}, fmt.Errorf("%w: it is larger than %d octets", errDamaged, maxStateBytes)
	}
	var s fileState
	if err := json.Unmarshal(content, &s); err != nil {
		return book{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if s.Version != stateVersion || len(s.Days) > maxDays {
		return book{}, fmt.Errorf("%w: version %d with %d days; it must be %d with at most %d", errDamaged, s.Version, len(s.Days), stateVersion, maxDays)
	}
	seen := map[string]bool{}
	for _, d := range s.Days {
		if d == nil || d.Used == nil || seen[d.Date] {
			return book{}, fmt.Errorf("%w: a day is empty or there twice", errDamaged)
		}
		if _, err := time.Parse(time.DateOnly, d.Date); err != nil {
			return book{}, fmt.Errorf("%w: %w", errDamaged, err)
		}
		seen[d.Date] = true
		for name, used := range d.Used {
			if name == "" || used < 0 {
				return book{}, fmt.Errorf("%w: link %q has used %d", errDamaged, name, used)
			}
		}
	}
	return book{days: s.Days}, nil
}

// Save writes the state file, if there is to be one, as each reservation and each
// settlement does; calling it again is of use where it has failed. A failure is logged
// when it begins and when it ends.
func (l *Links) Save() error {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	name, before := l.file, l.unsaved
	l.mu.Unlock()
	var err error
	if name != "" {
		err = l.store(name)
	}
	switch {
	case name == "":
	case err == nil && before != nil:
		l.log.Info("What heavy tests have used today is kept again", "file", name)
	case err != nil && before == nil:
		l.log.Error("What heavy tests use today is not kept, and what has a budget is refused", "file", name, "err", err)
	}
	l.mu.Lock()
	l.unsaved = err
	l.mu.Unlock()
	return err
}

// Saved is why what the days have used is not in the state file; nil: it is, or there is
// to be none.
func (l *Links) Saved() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsaved
}

// store brings the file and what is known together; saving is held.
func (l *Links) store(name string) error {
	if !l.loaded {
		if err := l.load(name); err != nil {
			return err
		}
		l.loaded = true
	}
	l.mu.Lock()
	content, err := l.content()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return replaceFile(name, content)
}

// content is the file's, with what is set aside as used; mu is held.
func (l *Links) content() ([]byte, error) {
	today := l.today()
	s := fileState{Version: stateVersion}
	for _, d := range l.book.days {
		used := maps.Clone(d.Used)
		if d == today {
			for name, k := range l.links {
				if k.reserved > 0 {
					used[name] = add(used[name], k.reserved)
				}
			}
		}
		s.Days = append(s.Days, &day{Date: d.Date, Used: used})
	}
	return json.MarshalIndent(s, "", " ")
}

// replaceFile writes a file such that after a crash at any time either the old
// content is there or the new.
func replaceFile(name string, content []byte) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(content))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what is wrong is told
	}
	return err
}
