package spool

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// log is the content of a directory with a few records.
type log struct {
	name     string // of the only segment
	segment  []byte
	position []byte
	points   []int // of each record
	ends     []int // offset after each record
}

const (
	logRecords   = 6
	logDelivered = 2
)

func smallLog(t *testing.T) (l log) {
	t.Helper()
	s := open(t, Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	end := 0
	for i := range logRecords {
		content, points := record(i)
		s.Append(content, points)
		end += headerBytes + len(content)
		l.points, l.ends = append(l.points, points), append(l.ends, end)
	}
	for range logDelivered {
		s.Next(nil)
		s.Done()
	}
	all := files(t, s.options.Dir)
	l.name = filepath.Base(all[0])
	for i, into := range []*[]byte{&l.segment, &l.position} {
		b, err := os.ReadFile(all[i])
		if err != nil {
			t.Fatal(err)
		}
		*into = b
	}
	if len(all) != 2 || len(l.segment) != end || len(l.position) != positionBytes {
		t.Fatalf("%d files, of %d and %d bytes", len(all), len(l.segment), len(l.position))
	}
	return l
}

// load opens a directory with that content.
func (l log) load(t testing.TB, segment, position []byte) *Spool {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{l.name: segment, positionName: position} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return open(t, Options{Dir: dir, MaxBytes: 1 << 20})
}

// further checks that a record that is appended now is read last, also after a restart.
func further(t *testing.T, s *Spool) (before []int) {
	t.Helper()
	const next = 100
	s.Append(record(next))
	s = reopen(t, s)
	all := drain(t, s)
	if len(all) == 0 || all[len(all)-1] != next {
		t.Fatalf("read %v, want %d last", all, next)
	}
	if stats := s.Stats(); stats.Points != 0 || stats.Bytes != 0 || stats.Err != nil {
		t.Fatalf("left: %+v", stats)
	}
	return all[:len(all)-1]
}

func TestTornTailIsCutOffAtEachByte(t *testing.T) {
	l := smallLog(t)
	for cut := range len(l.segment) + 1 {
		s := l.load(t, l.segment[:cut], l.position)
		var want []int
		for i := logDelivered; i < logRecords && l.ends[i] <= cut; i++ {
			want = append(want, i)
		}
		waiting := int64(0)
		for _, i := range want {
			waiting += int64(l.points[i])
		}
		if got := s.Stats(); got.Points != waiting || got.Dropped != 0 || got.Damaged != 0 {
			t.Fatalf("cut at %d: %+v, want %d points", cut, got, waiting)
		}
		if got := further(t, s); !slices.Equal(got, want) {
			t.Fatalf("cut at %d: read %v, want %v", cut, got, want)
		}
	}
}

// TestDamagedRecordIsSkippedAndItsPointsAreCounted inverts each byte in turn.
func TestDamagedRecordIsSkippedAndItsPointsAreCounted(t *testing.T) {
	l := smallLog(t)
	for at := range l.segment {
		damaged := slices.Clone(l.segment)
		damaged[at] ^= 0xff
		hit := slices.IndexFunc(l.ends, func(end int) bool { return at < end })
		s := l.load(t, damaged, l.position)
		var want []int
		for i := logDelivered; i < logRecords; i++ {
			if i != hit {
				want = append(want, i)
			}
		}
		dropped, places := uint64(l.points[hit]), uint64(1)
		begin := l.ends[hit] - headerBytes - len(mustRecord(hit))
		if hit < logDelivered || hit == logRecords-1 && at < begin+headerBytes {
			dropped, places = 0, 0 // delivered before, or like a torn tail
		}
		got := drain(t, s)
		if stats := s.Stats(); !slices.Equal(got, want) || stats.Dropped != dropped || stats.Damaged != places || stats.Points != 0 {
			t.Fatalf("byte %d of record %d: read %v, %+v; want %v, %d dropped", at, hit, got, stats, want, dropped)
		}
		if got := further(t, s); len(got) != 0 {
			t.Fatalf("byte %d: read %v again", at, got)
		}
	}
}

func mustRecord(i int) []byte {
	content, _ := record(i)
	return content
}

func TestDamagedPositionRepeatsRecordsOfOneSegment(t *testing.T) {
	l := smallLog(t)
	for at := range len(l.position) + 1 {
		damaged := slices.Clone(l.position)
		if at < len(damaged) {
			damaged[at] ^= 0xff
		} else {
			damaged = nil
		}
		if got := drain(t, l.load(t, l.segment, damaged)); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
			t.Fatalf("byte %d: read %v", at, got)
		}
	}
}

func TestLostSegmentIsCounted(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxBytes: 128 << 10})
	const count = 500
	total := 0
	for i := range count {
		content, points := record(i)
		s.Append(content, points)
		total += points
	}
	all := files(t, s.options.Dir)
	if len(all) < 4 {
		t.Fatalf("%d files, want more", len(all))
	}
	if err := os.Remove(all[1]); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s)
	read, points := drain(t, s), 0
	for _, n := range read {
		_, p := record(n)
		points += p
	}
	if stats := s.Stats(); !slices.IsSorted(read) || read[0] != 0 || read[len(read)-1] != count-1 || int(stats.Dropped)+points != total || stats.Damaged != 1 {
		t.Errorf("%+v, and %d points read; want %d", stats, points, total)
	}
}

// TestSegmentsAndPositionMayDisagree: after a loss of power the position can be newer than the segments.
func TestSegmentsAndPositionMayDisagree(t *testing.T) {
	l := smallLog(t)
	newer := l.load(t, l.segment, l.position)
	drain(t, newer)
	position, err := os.ReadFile(filepath.Join(newer.options.Dir, positionName))
	if err != nil {
		t.Fatal(err)
	}
	s := l.load(t, l.segment[:l.ends[0]], position)
	if got := further(t, s); len(got) != 0 || s.Stats().Dropped != 0 {
		t.Errorf("read %v, %+v", got, s.Stats())
	}
}

// FuzzFiles: whatever the files have, what is read is valid, reading ends, and what is appended is read.
func FuzzFiles(f *testing.F) {
	s := open(f, Options{Dir: f.TempDir(), MaxBytes: 1 << 20})
	s.Append(record(1))
	s.Append(record(2))
	seed, err := os.ReadFile(files(f, s.options.Dir)[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, seed, []byte{}, uint64(3))
	f.Add([]byte(marker), seed[3:], make([]byte, positionBytes), uint64(1)<<61)
	f.Fuzz(func(t *testing.T, first, second, position []byte, name uint64) {
		dir := t.TempDir()
		var d directory
		if err := d.open(dir); err != nil {
			t.Fatal(err)
		}
		var one, two segment
		one.first, two.first = 0, name%maxNumber
		for g, content := range map[*segment][]byte{&one: first, &two: second} {
			if err := d.create(g); err != nil {
				t.Fatal(err)
			}
			if _, err := g.data.WriteAt(content, 0); err != nil {
				t.Fatal(err)
			}
			g.close()
		}
		if err := errors.Join(d.close(), os.WriteFile(filepath.Join(dir, positionName), position, 0o600)); err != nil {
			t.Fatal(err)
		}
		s := open(t, Options{Dir: dir, MaxBytes: 1 << 20})
		s.Append([]byte("last"), 3)
		var last string
		for count := 0; ; count++ {
			content, points := s.Next(nil)
			if content == nil {
				break
			}
			if count > len(first)+len(second) || points <= 0 {
				t.Fatalf("record %d of %d points", count, points)
			}
			last = string(content)
			s.Done()
		}
		if stats := s.Stats(); last != "last" || stats.Points != 0 {
			t.Fatalf("read %q last, %+v", last, stats)
		}
	})
}

// TestOtherFilesAreNotWritten: where others can write to the directory, a link in it leads to a file of this user, and a pipe waits.
func TestOtherFilesAreNotWritten(t *testing.T) {
	const first = "00000000000000000000" + suffix
	for name, damage := range map[string]func(dir, victim string) error{
		"link of a segment":    func(dir, victim string) error { return os.Symlink(victim, filepath.Join(dir, first)) },
		"link of the position": func(dir, victim string) error { return os.Symlink(victim, filepath.Join(dir, positionName)) },
		"pipe as the position": func(dir, _ string) error { return syscall.Mkfifo(filepath.Join(dir, positionName), 0o600) },
		"pipe as a segment":    func(dir, _ string) error { return syscall.Mkfifo(filepath.Join(dir, first), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
			if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), damage(dir, victim)); err != nil {
				t.Fatal(err)
			}
			s, err := Open(Options{Dir: dir, MaxBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				s.Append(record(i))
			}
			if got := drain(t, s); len(got) != 10 {
				t.Errorf("%d records, want all in order", len(got))
			}
			_ = s.Close() // it may not have written the segment
			if content, err := os.ReadFile(victim); err != nil || string(content) != "precious" {
				t.Errorf("%q, %v", content, err)
			}
		})
	}
}
