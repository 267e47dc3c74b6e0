package quota

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// stored returns a store with a file, and its log.
func stored(t *testing.T, file string, clock *wallClock) (*Store, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return New(Options{File: file, Now: clock.now, Log: slog.New(slog.NewTextHandler(&log, nil))}), &log
}

func TestUsageSurvivesARestart(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	file := filepath.Join(t.TempDir(), "made", "links.json")
	s, log := stored(t, file, clock)
	spend(t, s, 400)
	if _, err := s.Reserve("uplink", limit, 500); err != nil { // a crash comes before the settlement
		t.Fatal(err)
	}
	s, _ = stored(t, file, clock)
	wantUsage(t, s, Usage{Limit: 1000, Used: 900, Left: 100})
	clock.Time = at("2026-11-22 12:00:00")
	s, _ = stored(t, file, clock)
	wantUsage(t, s, Usage{Limit: 1000, Left: 1000})
	if log.Len() > 0 {
		t.Errorf("log is %s", log)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}

func TestHostThatBootsInThePastRenewsNothing(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	file := filepath.Join(t.TempDir(), "links.json")
	s, _ := stored(t, file, clock)
	spend(t, s, 900)
	for range 3 {
		clock.Time = at("1970-01-01 00:00:05")
		s, _ = stored(t, file, clock)
		wantUsage(t, s, Usage{Limit: 1000, Used: 900, Left: 100})
		clock.Time = at("2026-11-21 12:10:00")
		wantUsage(t, s, Usage{Limit: 1000, Used: 900, Left: 100})
	}
}

// damagedFiles are invalid contents of a state file.
func damagedFiles(t *testing.T) map[string]string {
	days := []*day{{Date: "2026-11-21", Used: map[string]int64{"uplink": 900}}}
	whole, err := formatState(days)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"empty":        "",
		"half":         `{"version":1,"days":[{"date":"2026-11-21","used":{"upli`,
		"zeros":        string(make([]byte, 4096)),
		"version":      `{"version":2,"days":[]}`,
		"negative":     `{"version":1,"days":[{"date":"2026-11-21","used":{"uplink":-5}}]}`,
		"huge":         `{"version":1,"days":[{"date":"2026-11-21","used":{"uplink":99999999999999999999}}]}`,
		"date":         `{"version":1,"days":[{"date":"today","used":{}}]}`,
		"nameless":     `{"version":1,"days":[{"date":"2026-11-21","used":{"":1}}]}`,
		"null":         `{"version":1,"days":[null]}`,
		"no days":      `{"version":1}`,
		"no used":      `{"version":1,"days":[{"date":"2026-11-21"}]}`,
		"twice":        `{"version":1,"days":[{"date":"2026-11-21","used":{}},{"date":"2026-11-21","used":{}}]}`,
		"many days":    `{"version":1,"days":[` + strings.Repeat(`{"date":"2026-11-21","used":{}},`, 9) + `{}]}`,
		"elsewhere":    `{"version":1,"days":[{"date":"2026-11-21","used":{},"unknown":"../x"}]}`,
		"other fields": `{"version":1,"days":[],"more":1}`,
		"two texts":    `{"version":1,"days":[]}{}`,
		"another sum":  strings.Replace(string(whole), "900", "100", 1),
		"cut":          string(whole[:len(whole)-2]),
		"large":        strings.Repeat(" ", maxStateBytes+1),
	}
}

func TestUnfinishedFileIsRemovedAtTheNextStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "links.json")
	left := filepath.Join(filepath.Dir(file), ".links.json.oneway-writing-7")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stored(t, file, &wallClock{at("2026-11-21 12:00:00")})
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}

func TestQuotaIsRefusedWhileItCannotBeSaved(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	dir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(dir, "links.json")
	s, log := stored(t, file, clock)
	spend(t, s, 100)
	running, err := s.Reserve("uplink", limit, 300)
	if err != nil {
		t.Fatal(err)
	}
	mend := spoil(t, dir)
	running.Settle(200) // the file has the whole reservation, more than was used
	for range 3 {
		var unsaved *UnsavedError
		if _, err := s.Reserve("uplink", limit, 100); !errors.As(err, &unsaved) || unsaved.Name != "uplink" {
			t.Fatalf("a quota that cannot be saved was reserved: %v", err)
		}
		if r, err := s.Reserve("free", 0, 100); err != nil {
			t.Errorf("a link without a quota: %v", err)
		} else {
			r.Settle(100)
		}
	}
	if s.Saved() == nil {
		t.Error("Saved reports no error")
	}
	wantUsage(t, s, Usage{Limit: 1000, Used: 300, Left: 700})
	again, _ := stored(t, file, clock) // a restart while it lasts: the usage is unknown, and Reserve fails
	if _, err := again.Reserve("uplink", limit, 1); !errors.As(err, new(*UnsavedError)) {
		t.Errorf("after a restart: %v", err)
	}
	if n := strings.Count(log.String(), "is not kept"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, log)
	}
	mend()
	if err := again.Save(); err != nil {
		t.Fatal(err)
	}
	wantUsage(t, again, Usage{Limit: 1000, Used: 400, Left: 600})
	spend(t, s, 100)
	if !strings.Contains(log.String(), "is kept again") || s.Saved() != nil {
		t.Errorf("%v, log is %s", s.Saved(), log)
	}
}

// spoil replaces a directory by a file, which also makes root's writes fail.
func spoil(t *testing.T, dir string) (mend func()) {
	t.Helper()
	aside := dir + ".aside"
	if err := errors.Join(os.Rename(dir, aside), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.Remove(dir), os.Rename(aside, dir)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFileThatCannotBeReadIsNotOverwritten(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	file := filepath.Join(t.TempDir(), "links.json")
	s, _ := stored(t, file, clock)
	spend(t, s, 900)
	aside := file + ".aside"
	if err := errors.Join(os.Rename(file, aside), os.Mkdir(file, 0o700)); err != nil { // reading a directory fails
		t.Fatal(err)
	}
	s, _ = stored(t, file, clock)
	if _, err := s.Reserve("uplink", limit, 1); !errors.As(err, new(*UnsavedError)) {
		t.Errorf("error is %v; the usage is unknown", err)
	}
	if err := errors.Join(os.Remove(file), os.Rename(aside, file)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reserve("uplink", limit, 101); !errors.As(err, new(*ExceededError)) {
		t.Errorf("error is %v; 100 bytes are left", err)
	}
}

func TestMovedStateFileCountsIfItHasMore(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	dir := t.TempDir()
	other, _ := stored(t, filepath.Join(dir, "b.json"), clock)
	spend(t, other, 700)
	s, _ := stored(t, filepath.Join(dir, "a.json"), clock)
	spend(t, s, 300)
	s.SetFile(filepath.Join(dir, "b.json"))
	wantUsage(t, s, Usage{Limit: 1000, Used: 700, Left: 300})
	s.SetFile(filepath.Join(dir, "a.json"))
	wantUsage(t, s, Usage{Limit: 1000, Used: 700, Left: 300})
	s.SetFile("")
	spend(t, s, 300)
	s, _ = stored(t, filepath.Join(dir, "a.json"), clock)
	wantUsage(t, s, Usage{Limit: 1000, Used: 700, Left: 300})
}

// TestFileIsCompleteAtAnyTime reads the file while others write it.
func TestFileIsCompleteAtAnyTime(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	file := filepath.Join(t.TempDir(), "links.json")
	s, _ := stored(t, file, clock)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				r, err := s.Reserve("uplink", limit, 20)
				if err != nil {
					t.Error(err)
					return
				}
				r.Settle(10)
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for reading := true; reading; {
		select {
		case <-ended:
			reading = false
		default:
		}
		if _, err := readState(file); err != nil {
			t.Fatal(err)
		}
	}
	wantUsage(t, s, Usage{Limit: 1000, Used: 400, Left: 600})
	s, _ = stored(t, file, clock)
	wantUsage(t, s, Usage{Limit: 1000, Used: 400, Left: 600})
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte(`{"version":1,"days":[{"date":"2026-11-21","used":{"uplink":5}},{"date":"2026-11-20","used":{}}]}`))
	f.Add([]byte(`{"version":1,"days":[null]}`))
	f.Add([]byte(`{"version":1,"days":[],"crc32":223132457}`))
	f.Add([]byte(`{"version":1,"days":[{"date":"2026-11-21","used":{},"unknown":"links.json.damaged"}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		b, err := parseState(content)
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Fatalf("error is %v, want errDamaged", err)
			}
			return
		}
		known := book{}
		known.add(b)
		for _, d := range known.days {
			for name, used := range d.Used {
				if name == "" || used < 0 {
					t.Fatalf("accepted %q: %d", name, used)
				}
			}
		}
		if len(known.days) > maxDays {
			t.Fatalf("%d days", len(known.days))
		}
		first, err := formatState(b.days)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseState(first)
		if err != nil {
			t.Fatalf("%s\nwas read, but not its reencoding: %v", content, err)
		}
		if second, _ := formatState(again.days); !bytes.Equal(first, second) {
			t.Fatalf("%s\nbecomes\n%s", first, second)
		}
	})
}

// TestFileThatIsRemovedOrReplacedIsWrittenAgain: a restart would forget the usage of today otherwise.
func TestFileThatIsRemovedOrReplacedIsWrittenAgain(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	replace := func(used int64) func(file string) error {
		return func(file string) error {
			content, err := formatState([]*day{{Date: "2026-11-21", Used: map[string]int64{"uplink": used}}})
			return errors.Join(err, os.Remove(file), os.WriteFile(file, content, 0o600))
		}
	}
	for name, c := range map[string]struct {
		damage func(file string) error
		used   int64
	}{
		"removed":                {os.Remove, 400},
		"directory removed":      {func(file string) error { return os.RemoveAll(filepath.Dir(file)) }, 400},
		"replaced by less usage": {replace(100), 400},
		"replaced by more usage": {replace(900), 900},
		"directory, by a file first": {func(file string) error {
			return errors.Join(os.RemoveAll(filepath.Dir(file)), os.WriteFile(filepath.Dir(file), nil, 0o600))
		}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "state", "links.json")
			s, log := stored(t, file, clock)
			spend(t, s, 400)
			s.Keep()
			if log.Len() > 0 {
				t.Errorf("log is %s", log)
			}
			if err := c.damage(file); err != nil {
				t.Fatal(err)
			}
			s.Keep()
			if s.Saved() != nil {
				if err := os.Remove(filepath.Dir(file)); err != nil {
					t.Fatal(err)
				}
				s.Keep()
			}
			s.Keep()
			if n := strings.Count(log.String(), "removed or replaced"); n != 1 {
				t.Errorf("told %d times, want once: %s", n, log)
			}
			s, _ = stored(t, file, clock)
			wantUsage(t, s, Usage{Limit: 1000, Used: c.used, Left: 1000 - c.used})
		})
	}
}
