package spool

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"oneway.example/tests/smalldisk"
	"oneway.example/tests/testseed"
)

// writerDir makes this test binary a process that writes to the spool of that directory until it is killed.
const writerDir = "ONEWAY_SPOOL_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		if err := writeUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// writeUntilKilled appends records from the number that is given on, reads every second one, and prints what it has done.
func writeUntilKilled(dir string) error {
	var next int
	if _, err := fmt.Scan(&next); err != nil {
		return err
	}
	s, err := Open(Options{Dir: dir, MaxBytes: 64 << 20})
	if err != nil {
		return err
	}
	for ; ; next++ {
		content, points := record(next)
		s.Append(content, points)
		fmt.Println("appended", next)
		if next%2 == 0 {
			continue
		}
		if content, _ = s.Next(nil); content != nil {
			var n int
			if _, err := fmt.Sscanf(string(content), "record %d", &n); err != nil {
				return err
			}
			s.Done()
			fmt.Println("delivered", n)
		}
	}
}

func TestKilledProcessLosesNoRecord(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	dir := filepath.Join(t.TempDir(), "spool")
	appended, delivered := -1, -1
	for round := range 40 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerDir+"="+dir)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, appended+1)
		// Every other process is killed some time after its first line: on a busy machine none has one within 40 ms.
		life, begun := time.Duration(rng.IntN(40))*time.Millisecond, round%2 == 0
		killed := time.AfterFunc(map[bool]time.Duration{true: life, false: time.Minute}[begun], func() { _ = cmd.Process.Kill() })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if !begun {
				killed.Reset(life)
				begun = true
			}
			var what string
			var n int
			if _, err := fmt.Sscan(lines.Text(), &what, &n); err != nil {
				continue // the last line may be incomplete
			}
			if what == "appended" {
				appended = n
				continue
			}
			// A process that was killed may have delivered one more than it has printed.
			if n != delivered+1 && n != delivered+2 {
				t.Fatalf("delivered record %d after %d", n, delivered)
			}
			delivered = n
		}
		_ = cmd.Wait() // killed
		killed.Stop()
		// One more may have been appended, of which it has printed nothing.
		s := open(t, Options{Dir: dir, MaxBytes: 64 << 20})
		left := peek(t, s)
		if len(left) > 0 {
			appended = max(appended, left[len(left)-1])
		}
		if stats := s.Stats(); stats.Dropped != 0 || stats.Damaged != 0 {
			t.Fatalf("%+v", stats)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, Options{Dir: dir, MaxBytes: 64 << 20})
	left := drain(t, s)
	if len(left) == 0 || left[len(left)-1] != appended || left[0] > delivered+2 || left[len(left)-1]-left[0] != len(left)-1 || !slices.IsSorted(left) {
		t.Errorf("after record %d of %d there are %d", delivered, appended, len(left))
	}
	t.Logf("%d appended, %d delivered by the killed processes", appended+1, delivered+1)
}

// peek returns the newest record's number without a change: it reads the files.
func peek(t *testing.T, s *Spool) (numbers []int) {
	t.Helper()
	for _, g := range s.segments {
		for at := int64(0); at < g.size; {
			h, ok := s.header(g, at, maxNumber)
			if !ok {
				t.Fatalf("no header at %d of %s", at, g.name)
			}
			content := make([]byte, h.length)
			if !g.read(content, at+headerBytes) {
				t.Fatal("not readable")
			}
			numbers = append(numbers, number(t, content, int(h.points)))
			at += h.size()
		}
	}
	return numbers
}

func TestFullDiskEndsOnlyTheGrowth(t *testing.T) {
	dir := smalldisk.Mount(t, "1m")
	s := open(t, Options{Dir: filepath.Join(dir, "spool"), MaxBytes: 16 << 20})
	s.Append(record(0))
	fill := smalldisk.Fill(t, dir)
	next, total := 1, 1
	// More than the disk and the memory can hold.
	for s.Stats().Dropped == 0 {
		content, points := record(next)
		content = append(content, make([]byte, 10_000)...)
		s.Append(content, points)
		next, total = next+1, total+points
		if next > 10_000 {
			t.Fatal("nothing is dropped")
		}
	}
	stats := s.Stats()
	if stats.Err == nil || stats.Bytes > memoryBytes+(1<<20) || int(stats.Points)+int(stats.Dropped) != total {
		t.Fatalf("%+v, want %d points", stats, total)
	}
	read := func(want int) {
		t.Helper()
		content, _ := s.Next(nil)
		var n int
		if _, err := fmt.Sscanf(string(content), "record %d", &n); err != nil || n != want {
			t.Fatalf("read %d, %v; want %d", n, err, want)
		}
		s.Done()
	}
	for want := range 10 {
		read(want)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	// Growth resumes, first by the records in memory, which are more than the disk: still nothing is out of order.
	before := s.Stats().Dropped
	for want := 10; want < next-1; want++ {
		s.Append(record(0))
		read(want)
	}
	if got := s.Stats(); got.Dropped != before || got.Err != nil {
		t.Errorf("%+v, want %d dropped", got, before)
	}
	s = reopen(t, s)
	if got := drain(t, s); len(got) != next-11 {
		t.Errorf("%d records left, want %d", len(got), next-11)
	}
}

func TestReadOnlyDiskIsDelivered(t *testing.T) {
	for _, empty := range []bool{false, true} {
		t.Run(fmt.Sprintf("empty=%t", empty), func(t *testing.T) {
			dir := smalldisk.Mount(t, "1m")
			o := Options{Dir: filepath.Join(dir, "spool"), MaxBytes: 1 << 20}
			var want []int
			if !empty {
				s := open(t, o)
				s.Append(record(1))
				s.Append(record(2))
				want = []int{1, 2}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			smalldisk.ReadOnly(t, dir)
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			s.Append(record(3))
			if got := drain(t, s); !slices.Equal(got, append(want, 3)) || s.Stats().Err == nil || s.Stats().Dropped != 0 {
				t.Errorf("read %v, %+v", got, s.Stats())
			}
			_ = s.Close() // an error: it cannot be written
		})
	}
}
