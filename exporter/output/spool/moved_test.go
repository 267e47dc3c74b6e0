package spool

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"oneway.example/tests/smalldisk"
)

// movedRecords is the number of records of these tests, in several segments.
const movedRecords = 500

// numbers are from, from+1 ... to-1.
func numbers(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

func appendAll(s *Spool, from, to int) {
	for i := from; i < to; i++ {
		s.Append(record(i))
	}
}

// TestRemovedFilesLoseNoRecord: the directory, or what is in it, goes while the spool is open. All records are read, by this process or
// after a restart, and no other one can use the directory.
func TestRemovedFilesLoseNoRecord(t *testing.T) {
	each := func(pattern string) func(dir string) error {
		return func(dir string) error {
			all, err := filepath.Glob(filepath.Join(dir, pattern))
			for _, one := range all {
				err = errors.Join(err, os.Remove(one))
			}
			return err
		}
	}
	aside := func(dir string) error { return os.Rename(dir, dir+".old") }
	for name, damage := range map[string]func(dir string) error{
		"directory removed":           os.RemoveAll,
		"its parent removed":          func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) },
		"its parent renamed":          func(dir string) error { return aside(filepath.Dir(dir)) },
		"directory renamed":           aside,
		"replaced by an empty one":    func(dir string) error { return errors.Join(aside(dir), os.Mkdir(dir, 0o700)) },
		"removed and made":            func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
		"all files removed":           each("*"),
		"segments removed":            each("*" + suffix),
		"newest segments removed":     each("*[5-9]" + suffix),
		"position removed":            each(positionName),
		"link to a directory instead": func(dir string) error { return errors.Join(aside(dir), os.Symlink(t.TempDir(), dir)) },
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", restart"}[restart], func(t *testing.T) {
				s := open(t, Options{Dir: filepath.Join(t.TempDir(), "state", "spool"), MaxBytes: 128 << 10})
				appendAll(s, 0, 3)
				if restart {
					s = reopen(t, s)
				}
				appendAll(s, 3, movedRecords)
				if len(files(t, s.options.Dir)) < 4 {
					t.Fatal("too few segments")
				}
				s.Next(nil)
				s.Done()
				s.Next(nil) // the reader has it
				if err := damage(s.options.Dir); err != nil {
					t.Fatal(err)
				}
				appendAll(s, movedRecords, movedRecords+20)
				s.Check()
				appendAll(s, movedRecords+20, movedRecords+40)
				s.Done()
				s.Check()
				if got := s.Stats(); got.Moved != 1 || got.Err != nil || got.Dropped != 0 || got.Damaged != 0 {
					t.Errorf("%+v, want one move", got)
				}
				if _, err := Open(s.options); !errors.Is(err, ErrLocked) {
					t.Errorf("another process opens the directory: %v", err)
				}
				if restart {
					s = reopen(t, s)
				}
				if got, want := drain(t, s), numbers(2, movedRecords+40); !slices.Equal(got, want) {
					t.Errorf("read %v, want %d to %d", got, want[0], want[len(want)-1])
				}
				if got := s.Stats(); got.Dropped != 0 || got.Points != 0 {
					t.Errorf("%+v, want none lost", got)
				}
			})
		}
	}
}

// TestDirectoryThatCannotBeMadeAgainKeepsItsRecords: meanwhile they are delivered, new ones are kept in memory, and the error is told.
func TestDirectoryThatCannotBeMadeAgainKeepsItsRecords(t *testing.T) {
	for name, c := range map[string]struct{ damage, mend func(dir string) error }{
		"a file in its place":    {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, os.Remove},
		"another process has it": {nil, nil},
		"records of another spool": {
			func(dir string) error {
				other, err := Open(Options{Dir: dir, MaxBytes: 1 << 20})
				if err == nil {
					appendAll(other, 900, 903)
					err = other.Close()
				}
				return err
			},
			os.RemoveAll,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{Dir: filepath.Join(t.TempDir(), "spool"), MaxBytes: 128 << 10})
			dir := s.options.Dir
			if c.damage == nil {
				var other *Spool
				c.damage = func(string) (err error) { other, err = Open(s.options); return err }
				c.mend = func(string) error { return other.Close() }
			}
			appendAll(s, 0, movedRecords)
			if err := errors.Join(os.RemoveAll(dir), c.damage(dir)); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				s.Check()
			}
			appendAll(s, movedRecords, movedRecords+20)
			if got := s.Stats(); got.Moved != 1 || got.Err == nil || got.Dropped != 0 {
				t.Errorf("%+v, want one move and an error", got)
			}
			for want := range 10 {
				content, points := s.Next(nil)
				if got := number(t, content, points); got != want {
					t.Fatalf("read %d, want %d", got, want)
				}
				s.Done()
			}
			if err := c.mend(dir); err != nil {
				t.Fatal(err)
			}
			s.Check()
			if got := s.Stats(); got.Moved != 1 || got.Err != nil || got.Dropped != 0 {
				t.Errorf("%+v, want no error", got)
			}
			s = reopen(t, s)
			got := drain(t, s)
			if at := slices.Index(got, 10); at < 0 || !slices.Equal(got[at:], numbers(10, movedRecords+20)) {
				t.Errorf("read %v, want 10 to %d", got, movedRecords+20)
			}
		})
	}
}

// TestRecordsOfAnotherSpoolStay: a directory that replaces this spool's may be a copy, or of another agent.
func TestRecordsOfAnotherSpoolStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s, err := Open(Options{Dir: dir, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	appendAll(s, 0, 10)
	other := open(t, Options{Dir: filepath.Join(t.TempDir(), "other"), MaxBytes: 1 << 20})
	appendAll(other, 100, 110)
	if err := errors.Join(other.Close(), os.RemoveAll(dir), os.Rename(other.options.Dir, dir)); err != nil {
		t.Fatal(err)
	}
	s.Check()
	appendAll(s, 10, 20)
	if got := drain(t, s); !slices.Equal(got, numbers(0, 20)) {
		t.Errorf("read %v, want 0 to 19", got)
	}
	s.Check()
	if err := s.Close(); err == nil {
		t.Error("no error")
	}
	if got := drain(t, open(t, Options{Dir: dir, MaxBytes: 1 << 20})); !slices.Equal(got, numbers(100, 110)) {
		t.Errorf("the other spool has %v", got)
	}
}

// TestRemovalOnASmallDiskLosesNoRecord: the removed files use the space until they are written again.
func TestRemovalOnASmallDiskLosesNoRecord(t *testing.T) {
	dir := filepath.Join(smalldisk.Mount(t, "64k"), "spool")
	s := open(t, Options{Dir: dir, MaxBytes: 1 << 20})
	next := 0
	for ; s.Stats().Err == nil; next++ {
		s.Append(record(next))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s.Check()
	appendAll(s, next, next+10)
	if got := s.Stats(); got.Moved != 1 || got.Err == nil || got.Dropped != 0 {
		t.Errorf("%+v, want a full disk", got)
	}
	if got := drain(t, s); !slices.Equal(got, numbers(0, next+10)) {
		t.Errorf("read %d records, want %d in order", len(got), next+10)
	}
	appendAll(s, 0, 10)
	if got := s.Stats(); got.Err != nil {
		t.Errorf("after its delivery there is no space: %+v", got)
	}
}

// TestDiskThatWasReadOnlyHasAllRecords: those in memory are written without a new one.
func TestDiskThatWasReadOnlyHasAllRecords(t *testing.T) {
	mount := smalldisk.Mount(t, "1m")
	s := open(t, Options{Dir: filepath.Join(mount, "spool"), MaxBytes: 1 << 20})
	appendAll(s, 0, 10)
	s = reopen(t, s) // the kernel refuses while a file is open for writing
	smalldisk.ReadOnly(t, mount)
	appendAll(s, 10, 20)
	for range 3 {
		s.Check()
		if s.Stats().Err == nil {
			t.Fatal("no error")
		}
	}
	smalldisk.Writable(t, mount)
	s.Check()
	if got := s.Stats(); got.Err != nil || got.Dropped != 0 || got.Moved != 0 {
		t.Errorf("%+v, want no error", got)
	}
	if got := drain(t, reopen(t, s)); !slices.Equal(got, numbers(0, 20)) {
		t.Errorf("read %v", got)
	}
}
