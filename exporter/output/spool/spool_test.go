package spool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// open opens a spool that the test closes.
func open(t testing.TB, o Options) *Spool {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reopen closes a spool and opens its directory again.
func reopen(t testing.TB, s *Spool) *Spool {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, s.options)
}

// record is a record of n points whose length depends on its number.
func record(number int) (content []byte, points int) {
	return fmt.Appendf(nil, "record %d %s", number, strings.Repeat("x", number%13)), 1 + number%7
}

// number is that of a record, which must be unchanged.
func number(t testing.TB, content []byte, points int) (n int) {
	t.Helper()
	_, err := fmt.Sscanf(string(content), "record %d", &n)
	want, count := record(n)
	if err != nil || string(want) != string(content) || points != count {
		t.Fatalf("record %q of %d points was not written: %v", content, points, err)
	}
	return n
}

// drain takes all records.
func drain(t testing.TB, s *Spool) (numbers []int) {
	t.Helper()
	var into []byte
	for {
		content, points := s.Next(into)
		if content == nil {
			return numbers
		}
		numbers = append(numbers, number(t, content, points))
		s.Done()
		into = content
	}
}

func TestRecordsAreReadInOrderAcrossRestarts(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	for _, o := range []Options{{Dir: filepath.Join(t.TempDir(), "a", "b"), MaxBytes: 1 << 20}, {MaxBytes: 1 << 20}} {
		s := open(t, o)
		written, read, waiting := 0, 0, int64(0)
		for range 20_000 {
			switch action := rng.IntN(100); {
			case action < 50:
				content, points := record(written)
				s.Append(content, points)
				written++
				waiting += int64(points)
			case action < 98:
				content, points := s.Next(nil)
				if content == nil {
					if read != written {
						t.Fatalf("nothing to read, want record %d of %d", read, written)
					}
					continue
				}
				if got := number(t, content, points); got != read {
					t.Fatalf("read record %d, want %d", got, read)
				}
				if rng.IntN(4) > 0 { // else it is read again
					s.Done()
					read++
					waiting -= int64(points)
				}
			case o.Dir != "":
				s = reopen(t, s)
			}
			if got := s.Stats(); got.Points != waiting || got.Dropped != 0 || got.Damaged != 0 || got.Err != nil || (got.Bytes > 0) != (waiting > 0) {
				t.Fatalf("stats are %+v, want %d points", got, waiting)
			}
		}
		if written < 5000 || read < 5000 {
			t.Errorf("only %d written and %d read", written, read)
		}
	}
}

func TestOldestSegmentIsDroppedAboveTheLimit(t *testing.T) {
	for _, o := range []Options{{Dir: t.TempDir(), MaxBytes: 64 << 10}, {MaxBytes: 64 << 10}} {
		s := open(t, o)
		const count = 10_000
		total, waiting := 0, 0
		for i := range count {
			content, points := record(i)
			s.Append(content, points)
			if i == 0 { // delivered: there is a position
				s.Next(nil)
				s.Done()
				continue
			}
			total += points
			if used := disk(t, o.Dir); used > o.MaxBytes+positionBytes {
				t.Fatalf("%d bytes on disk, want at most %d", used, o.MaxBytes)
			}
		}
		stats := s.Stats()
		if stats.Bytes < o.MaxBytes/2 || stats.Bytes > o.MaxBytes || int(stats.Dropped)+int(stats.Points) != total || stats.Damaged != 0 {
			t.Errorf("stats are %+v, want %d points together", stats, total)
		}
		if o.Dir != "" {
			s = reopen(t, s)
			if now := s.Stats(); now.Points != stats.Points {
				t.Errorf("after a restart %d points wait, want %d", now.Points, stats.Points)
			}
		}
		left := drain(t, s)
		if o.Dir != "" && s.Stats().Dropped != 0 {
			t.Errorf("%d dropped points are counted again after a restart", s.Stats().Dropped)
		}
		for i, n := range left {
			if n != count-len(left)+i {
				t.Fatalf("record %d of %d is %d", i, len(left), n)
			}
			_, points := record(n)
			waiting += points
		}
		if int64(waiting) != stats.Points {
			t.Errorf("%d points left, want %d", waiting, stats.Points)
		}
	}
}

func disk(t *testing.T, dir string) (used int64) {
	t.Helper()
	if dir == "" {
		return 0
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		used += info.Size()
	}
	return used
}

// TestRecordOfTheReaderIsNotDropped: the limit drops the segment of a record that is being delivered.
func TestRecordOfTheReaderIsNotDropped(t *testing.T) {
	for _, delivered := range []bool{true, false} {
		s := open(t, Options{Dir: t.TempDir(), MaxBytes: 16 << 10})
		s.Append(record(0))
		content, points := s.Next(nil)
		total := points
		for i := 1; i < 2000; i++ {
			more, n := record(i)
			s.Append(more, n)
			total += n
		}
		if number(t, content, points) != 0 {
			t.Error("the first record changed")
		}
		if stats := s.Stats(); int(stats.Dropped)+int(stats.Points) != total {
			t.Errorf("%+v, want %d points together", stats, total)
		}
		if delivered {
			s.Done()
			total -= points
		}
		waiting := 0
		for _, n := range drain(t, s) {
			_, points := record(n)
			waiting += points
		}
		if stats := s.Stats(); int(stats.Dropped)+waiting != total || stats.Points != 0 || stats.Bytes != 0 {
			t.Errorf("delivered %t: %+v and %d read, want %d", delivered, stats, waiting, total)
		}
	}
}

func TestRecordLargerThanTheLimitIsDropped(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxBytes: 8 << 10})
	s.Append(record(1))
	s.Append(make([]byte, 8<<10), 5)
	s.Append(record(2))
	if got := drain(t, s); !slices.Equal(got, []int{1, 2}) || s.Stats().Dropped != 5 {
		t.Errorf("read %v, %+v", got, s.Stats())
	}
}

func TestOneProcessUsesADirectory(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "new"), MaxBytes: 1 << 20}
	s := open(t, o)
	if _, err := Open(o); !errors.Is(err, ErrLocked) {
		t.Errorf("opened a second time: %v", err)
	}
	info, err := os.Stat(o.Dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	s.Append(record(1))
	for _, e := range files(t, o.Dir) {
		if info, err := os.Stat(e); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", e, info.Mode(), err)
		}
	}
	reopen(t, s)
}

func TestUnreadableDirectoryIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: file, MaxBytes: 1 << 20}); err == nil {
		t.Error("a file was opened as a directory")
	}
}

func TestReadyAfterAppendAndAfterARestart(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	<-s.Ready()
	s.Append(record(1))
	<-s.Ready()
	s = reopen(t, s)
	<-s.Ready()
	select {
	case <-s.Ready():
		t.Error("ready without a reason")
	default:
	}
}

func TestAppendAndNextDoNotAllocate(t *testing.T) {
	for _, o := range []Options{{Dir: t.TempDir(), MaxBytes: 1 << 30}, {MaxBytes: 1 << 22}} {
		s := open(t, o)
		content, into := make([]byte, 1000), make([]byte, 1000)
		step := func() {
			s.Append(content, 10)
			into, _ = s.Next(into)
			s.Done()
		}
		step()
		if n := testing.AllocsPerRun(1000, step); n != 0 {
			t.Errorf("%q: %v allocations per record", o.Dir, n)
		}
	}
}

func BenchmarkAppendAndNext(b *testing.B) {
	for name, dir := range map[string]string{"disk": b.TempDir(), "memory": ""} {
		for _, size := range []int{1 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				s := open(b, Options{Dir: dir, MaxBytes: 64 << 20})
				content, into := make([]byte, size), make([]byte, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					s.Append(content, 100)
					into, _ = s.Next(into)
					s.Done()
				}
			})
		}
	}
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An operation that waits for its disk keeps nobody from the content and counters before it: the agent's page and its readiness have
// them.
func TestStatsDoNotWaitForTheDisk(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	s.Append(mustRecord(1), 7)
	s.mu.Lock() // as an operation has it
	stats := make(chan Stats, 1)
	go func() { stats <- s.Stats() }()
	select {
	case got := <-stats:
		if got.Points != 7 || got.Bytes == 0 {
			t.Errorf("%+v, want 7 points", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("Stats waits")
	}
	s.mu.Unlock()
}
