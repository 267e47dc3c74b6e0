package sched

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"oneway.example/exporter/wholefile"
)

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

// recentlyDamaged is how old a file may be whose last day is today or yesterday.
const recentlyDamaged = 48 * time.Hour

var errMissing = errors.New("the file is missing, and one that was damaged is kept")

// load takes over what a file knows; saving is held. Of a damaged one nobody knows what was
// used on its last day, nor today.
func (l *Links) load(name string) error {
	wholefile.RemoveUnfinished(name)
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
		if info, err := os.Lstat(name + damagedSuffix); err == nil && l.now().Sub(info.ModTime()) < recentlyDamaged {
			aside, damage = name+damagedSuffix, errMissing
		}
	case damage != nil:
		return damage
	}
	if aside != "" {
		if info, err := os.Lstat(aside); err == nil {
			kept.lose(info.ModTime().In(l.now().Location()).Format(time.DateOnly), aside, damage)
		}
		kept.lose(l.now().Format(time.DateOnly), aside, damage)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.book
	l.book = kept
	l.book.add(known)
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
	return fmt.Sprintf("sched: what was used today is not known, the state file was damaged%s; it is kept as %s: until tomorrow, or until that is removed, nothing is given out", why, e.File)
}

func (e *unknownError) Unwrap() error { return e.Err }

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
	unknown, lost := errors.AsType[*unknownError](err)
	switch {
	case name == "":
	case err == nil && before != nil:
		l.log.Info("What heavy tests have used today is kept again", "file", name)
	case lost && !errors.As(before, new(*unknownError)):
		l.log.Error("What heavy tests have used today is not known, the file was damaged: what has a budget is refused until tomorrow, or until you remove what is kept of it",
			"file", name, "remove", unknown.File, "err", unknown.Err)
	case err != nil && before == nil:
		l.log.Error("What heavy tests use today is not kept, and what has a budget is refused", "file", name, "err", err)
	}
	l.mu.Lock()
	l.unsaved = err
	l.mu.Unlock()
	return err
}

// Saved is why what the days have used is not in the state file, or not known since that was
// damaged; nil: it is, or there is to be none.
func (l *Links) Saved() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsaved != nil || l.file == "" {
		return l.unsaved
	}
	return l.known()
}

// known is an *unknownError, or nil if it is known what was used today; mu is held.
func (l *Links) known() error {
	d := l.today()
	if d.Unknown == "" {
		return nil
	}
	return &unknownError{File: filepath.Join(filepath.Dir(l.file), d.Unknown), Err: d.damage}
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
	kept := l.book.unknown()
	l.mu.Unlock()
	for _, file := range kept {
		if _, err := os.Lstat(filepath.Join(filepath.Dir(name), file)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		l.mu.Lock()
		l.book.believe(file)
		l.mu.Unlock()
	}
	l.mu.Lock()
	content, err := l.content()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	if err := wholefile.Replace(name, content, 0o600); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known()
}

// content is the file's, with what is set aside as used; mu is held.
func (l *Links) content() ([]byte, error) {
	today := l.today()
	var days []*day
	for _, d := range l.book.days {
		used := maps.Clone(d.Used)
		if d == today {
			for name, k := range l.links {
				if k.reserved > 0 {
					used[name] = add(used[name], k.reserved)
				}
			}
		}
		days = append(days, &day{Date: d.Date, Used: used, Unknown: d.Unknown})
	}
	return formatState(days)
}
