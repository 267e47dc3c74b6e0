package responder

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var noLog = slog.New(slog.DiscardHandler)

func TestDayIsUsedUpAndBeginsAnewAtMidnight(t *testing.T) {
	now := time.Date(2026, 3, 28, 23, 0, 0, 0, time.Local)
	l := newLedger("", func() time.Time { return now }, noLog)
	first, left, ok := l.reserve("a", 100, 60)
	if !ok || left != 40 {
		t.Fatalf("left %d, %t", left, ok)
	}
	if _, left, ok := l.reserve("a", 100, 41); ok || left != 40 {
		t.Errorf("41 of 40 were given, or left is %d", left)
	}
	if _, _, ok := l.reserve("b", 100, 100); !ok {
		t.Error("another token's use counts")
	}
	if _, _, ok := l.reserve("free", 0, 1<<60); !ok {
		t.Error("no limit is a limit")
	}
	first.settle(10)
	if left := l.left("a", 100); left != 90 {
		t.Errorf("left %d, want 90", left)
	}
	if want := time.Date(2026, 3, 29, 0, 0, 0, 0, time.Local); !l.renewed().Equal(want) {
		t.Errorf("renewed at %v, want %v", l.renewed(), want)
	}
	second, _, _ := l.reserve("a", 100, 50)
	now = now.Add(90 * time.Minute)
	if left := l.left("a", 100); left != 50 {
		t.Errorf("left %d after midnight, want 50: what runs is of the new day", left)
	}
	second.settle(30)
	if left := l.left("a", 100); left != 70 {
		t.Errorf("left %d, want 70", left)
	}
}

func TestUseOfTheDaySurvivesACrash(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.Local)
	clock := func() time.Time { return now }
	l := newLedger(dir, clock, noLog)
	settled, _, _ := l.reserve("a", 1000, 300)
	settled.settle(200)
	l.reserve("a", 1000, 500) // and here the power goes
	again := newLedger(dir, clock, noLog)
	if left := again.left("a", 1000); left != 300 {
		t.Errorf("left %d, want 300: 200 used, 500 set aside", left)
	}
	now = now.AddDate(0, 0, 1)
	if left := newLedger(dir, clock, noLog).left("a", 1000); left != 1000 {
		t.Errorf("left %d the next day", left)
	}
	if err := os.WriteFile(filepath.Join(dir, ledgerFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if left := newLedger(dir, clock, noLog).left("a", 1000); left != 1000 {
		t.Errorf("left %d after a damaged file", left)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("files left behind: %q", files)
	}
}

func TestUseIsCountedWithoutADisk(t *testing.T) {
	l := newLedger(filepath.Join(t.TempDir(), "absent"), time.Now, noLog)
	r, _, ok := l.reserve("a", 100, 60)
	if !ok {
		t.Fatal("refused")
	}
	r.settle(60)
	if left := l.left("a", 100); left != 40 {
		t.Errorf("left %d, want 40", left)
	}
}

// Whatever is in the file, no token has used less than nothing, and what it may use is a whole day's at the most.
func FuzzLedger(f *testing.F) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.Local)
	f.Add([]byte(`{"day":"2026-03-28","bytes":{"a":5,"b":-5}}`))
	f.Add([]byte(`{"day":"2026-03-27","bytes":{"a":5}}`))
	f.Add([]byte(`{"bytes":null}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ledgerFile), content, 0o600); err != nil {
			t.Fatal(err)
		}
		l := newLedger(dir, func() time.Time { return now }, noLog)
		for name, n := range l.used {
			if left := l.left(name, 1000); n <= 0 || left < 0 || left > 1000 {
				t.Errorf("%q has used %d, and %d of 1000 is left", name, n, left)
			}
		}
	})
}
