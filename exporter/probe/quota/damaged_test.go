package quota

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDamagedFileIsLoggedRenamedAndRefusesTheDay(t *testing.T) {
	for name, content := range damagedFiles(t) {
		t.Run(name, func(t *testing.T) {
			clock := &wallClock{at("2026-11-21 12:00:00")}
			file := filepath.Join(t.TempDir(), "links.json")
			if err := errors.Join(os.WriteFile(file, []byte(content), 0o600), os.Chtimes(file, clock.Time, clock.Time)); err != nil {
				t.Fatal(err)
			}
			refused := func(s *Store) {
				t.Helper()
				if _, err := s.Reserve("uplink", limit, 1); !errors.As(err, new(*UnsavedError)) || !strings.Contains(err.Error(), file+".damaged") || s.Saved() == nil {
					t.Errorf("error is %v, saved: %v", err, s.Saved())
				}
				if r, err := s.Reserve("free", 0, 100); err != nil {
					t.Errorf("a link without a quota_bytes: %v", err)
				} else {
					r.Settle(100)
				}
			}
			s, log := stored(t, file, clock)
			for range 3 {
				refused(s)
				_ = s.Save() // the agent does this every 10 s
			}
			if s := log.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "level=ERROR") || !strings.Contains(s, "remove="+file+".damaged") {
				t.Errorf("log is %s", s)
			}
			if aside, err := os.ReadFile(file + ".damaged"); err != nil || string(aside) != content {
				t.Errorf("the content was lost: %v", err)
			}
			s, _ = stored(t, file, clock)
			refused(s)
			clock.Time = at("1970-01-01 00:00:05") // a clock stepped back renews nothing
			refused(s)
			clock.Time = at("2026-11-22 00:00:01")
			if err := s.Save(); err != nil {
				t.Errorf("the next day: %v", err)
			}
			spend(t, s, 400)
			s, log = stored(t, file, clock)
			wantUsage(t, s, Usage{Limit: 1000, Used: 400, Left: 600})
			if log.Len() > 0 {
				t.Errorf("log is %s", log)
			}
		})
	}
}

func TestRemovalOfTheDamagedFileRenewsTheQuota(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	file := filepath.Join(t.TempDir(), "links.json")
	for n, kept := range []string{file + ".damaged", file + ".damaged-2"} { // the first still exists
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s, log := stored(t, file, clock)
		if _, err := s.Reserve("uplink", limit, 1); !errors.As(err, new(*UnsavedError)) {
			t.Fatalf("error is %v", err)
		}
		away := kept + ".away"
		if err := os.Rename(kept, away); err != nil {
			t.Fatal(err)
		}
		spend(t, s, 400)
		wantUsage(t, s, Usage{Limit: 1000, Used: 400, Left: 600})
		if !strings.Contains(log.String(), "is kept again") || s.Saved() != nil {
			t.Errorf("%v, log is %s", s.Saved(), log)
		}
		if n == 0 {
			if err := os.Rename(away, kept); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDamagedFileWithoutASuccessorRefusesTheDay(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	file := filepath.Join(t.TempDir(), "links.json")
	if err := os.WriteFile(file+".damaged", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := stored(t, file, clock)
	if _, err := s.Reserve("uplink", limit, 1); !errors.As(err, new(*UnsavedError)) {
		t.Errorf("error is %v", err)
	}
}

func TestOldDamagedFileIsIgnored(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	file := filepath.Join(t.TempDir(), "links.json")
	written := clock.Add(-30 * 24 * time.Hour)
	if err := errors.Join(os.WriteFile(file+".damaged", nil, 0o600), os.Chtimes(file+".damaged", written, written)); err != nil {
		t.Fatal(err)
	}
	s, _ := stored(t, file, clock)
	spend(t, s, 1)
}

func TestStateFileMustBeARegularFile(t *testing.T) {
	for name, create := range map[string]func(string) error{
		"pipe":      func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"directory": func(file string) error { return os.Mkdir(file, 0o700) },
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := create(file); err != nil {
			t.Fatal(err)
		}
		s, log := stored(t, file, &wallClock{at("2026-11-21 12:00:00")})
		if _, err := s.Reserve("uplink", limit, 1); !errors.As(err, new(*UnsavedError)) || !strings.Contains(log.String(), "is not a regular file") {
			t.Errorf("%s: error is %v, log is %s", name, err, log)
		}
	}
}

func TestDamagedFileRefusesAlsoAfterAClockThatStartsInThePast(t *testing.T) {
	clock := &wallClock{at("1970-01-01 00:00:05")}
	file := filepath.Join(t.TempDir(), "links.json")
	written := at("2026-11-21 12:00:00")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, written, written)); err != nil {
		t.Fatal(err)
	}
	s, _ := stored(t, file, clock)
	for _, now := range []string{"1970-01-01 00:00:05", "2026-11-21 12:10:00"} {
		clock.Time = at(now)
		if _, err := s.Reserve("uplink", limit, 1); !errors.As(err, new(*UnsavedError)) {
			t.Errorf("%s: error is %v", now, err)
		}
	}
}

func TestDamagedFileThatCannotBeRenamedIsLeftAlone(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	file := filepath.Join(t.TempDir(), "links.json")
	for n := range maxDamaged + 1 {
		if err := os.WriteFile(file, []byte{byte(n)}, 0o600); err != nil {
			t.Fatal(err)
		}
		s, _ := stored(t, file, clock)
		if _, err := s.Reserve("uplink", limit, 1); !errors.As(err, new(*UnsavedError)) {
			t.Errorf("%d: error is %v", n, err)
		}
	}
	if b, err := os.ReadFile(file); err != nil || !bytes.Equal(b, []byte{maxDamaged}) {
		t.Errorf("the last one: %v, %v", b, err)
	}
	if b, err := os.ReadFile(file + ".damaged"); err != nil || !bytes.Equal(b, []byte{0}) {
		t.Errorf("the first one: %v, %v", b, err)
	}
}

func TestFileWithoutASumIsRead(t *testing.T) {
	clock := &wallClock{at("2026-11-21 12:00:00")}
	file := filepath.Join(t.TempDir(), "links.json")
	old := "{\n \"version\": 1,\n \"days\": [\n  {\n   \"date\": \"2026-11-21\",\n   \"used\": {\n    \"uplink\": 900\n   }\n  }\n ]\n}"
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	s, log := stored(t, file, clock)
	wantUsage(t, s, Usage{Limit: 1000, Used: 900, Left: 100})
	if log.Len() > 0 {
		t.Errorf("log is %s", log)
	}
}

func TestFlippedBitsAndPrefixesAreDetected(t *testing.T) {
	days := []*day{{Date: "2026-11-20", Used: map[string]int64{"<uplink> \u00e9": 1 << 62}}, {Date: "2026-11-21", Used: map[string]int64{"a": 95, "b": 0}, Unknown: "links.json.damaged"}}
	content, err := formatState(days)
	if err != nil {
		t.Fatal(err)
	}
	for n := range content[:len(content)-1] { // the last is a line feed
		if _, err := parseState(content[:n]); !errors.Is(err, errDamaged) {
			t.Errorf("%q: %v", content[:n], err)
		}
	}
	for bit := range 8 * len(content) {
		other := bytes.Clone(content)
		other[bit/8] ^= 1 << (bit % 8)
		b, err := parseState(other)
		if again, _ := formatState(b.days); err == nil && !bytes.Equal(again, content) {
			t.Errorf("%q is accepted as %q", other, again)
		}
	}
}
