package report

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/tests/testseed"
)

var epoch = time.Date(2026, 11, 21, 17, 25, 32, 0, time.UTC)

func open(tb testing.TB, o Options) *Store {
	tb.Helper()
	return Open(o)
}

// header returns that of the run n minutes after epoch.
func header(n int) Header {
	begin := epoch.Add(time.Duration(n) * time.Minute)
	return Header{
		ID: NewID(begin, rand.New(rand.NewPCG(1, uint64(n)))), Path: "calgary-to-seoul", Probe: "saturation", Kind: "saturation", Peer: "h",
		Begin: begin, End: begin.Add(time.Minute), Result: "completed", Summary: []Line{{Quantity: "throughput", Direction: "forward", Value: "4.98 Mb/s"}},
	}
}

// noise returns n bytes that do not compress.
func noise(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func write(tb testing.TB, s *Store, h Header, body any) {
	tb.Helper()
	if err := s.Write(h, body); err != nil {
		tb.Fatal(err)
	}
}

func ids(headers []Header) (all []string) {
	for _, h := range headers {
		all = append(all, h.ID)
	}
	return all
}

// files lists a directory.
func files(tb testing.TB, dir string) (names []string) {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestReportIsReadBackAndAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "reports")
	s := open(t, Options{Dir: dir})
	h := header(0)
	write(t, s, h, map[string][]float64{"delay": {0.1, 0.2}})
	for _, s := range []*Store{s, open(t, Options{Dir: dir})} {
		listed := s.List()
		if len(listed) != 1 || listed[0].FileBytes == 0 || s.Stats().Bytes != listed[0].FileBytes {
			t.Fatalf("list is %+v, stats %+v", listed, s.Stats())
		}
		listed[0].FileBytes, listed[0].Report = 0, ""
		if diff := cmp.Diff(h, listed[0]); diff != "" {
			t.Errorf("header (-want +got):\n%s", diff)
		}
		f, err := s.Open(h.ID)
		if err != nil {
			t.Fatal(err)
		}
		zipped, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Schema  string               `json:"schema"`
			Header  Header               `json:"header"`
			Summary []Line               `json:"summary"`
			Body    map[string][]float64 `json:"body"`
		}
		if err := json.NewDecoder(zipped).Decode(&got); err != nil {
			t.Fatal(err)
		}
		got.Header.Summary = got.Summary
		if got.Schema != "oneway/report/1" || cmp.Diff(h, got.Header) != "" || !slices.Equal(got.Body["delay"], []float64{0.1, 0.2}) {
			t.Errorf("got %+v", got)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOldestAreRemovedAboveTheLimit(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), noise(10_000), 0o600); err != nil { // a file of the user
		t.Fatal(err)
	}
	s := open(t, Options{Dir: dir, MaxRuns: 3})
	order := rand.New(rand.NewPCG(testseed.Of(t), 0)).Perm(10)
	t.Logf("order %v", order)
	var want []string
	for _, n := range order {
		write(t, s, header(n), nil)
	}
	// A report older than all that are kept is removed at the next write, not before.
	for i, n := range []int{10, 11, 12} {
		write(t, s, header(n), nil)
		want = slices.Insert(want, 0, header(n).ID)
		if got := s.List(); len(got) != 3 || got[0].ID != want[0] {
			t.Fatalf("after %d: %v", i, ids(got))
		}
	}
	if diff := cmp.Diff(want, ids(s.List())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if names := files(t, dir); len(names) != 4 || !slices.Contains(names, "notes.txt") {
		t.Errorf("files are %v", names)
	}
	if got := s.Stats(); got.Written != 13 || got.Removed != 10 || got.Runs != 3 || got.Error != nil {
		t.Errorf("stats are %+v", got)
	}
	if runs, incidents := s.Newest(); len(incidents) != 0 || len(runs) != 1 || runs[Probe{s.List()[0].Path, s.List()[0].Probe}].ID != want[0] {
		t.Errorf("the newest are %v and %v", runs, incidents)
	}
}

func TestDirectoryStaysWithinItsByteLimit(t *testing.T) {
	dir := t.TempDir()
	const limit = 20_000
	s := open(t, Options{Dir: dir, MaxBytes: limit})
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	for n := range 40 {
		write(t, s, header(n), noise(1+rng.IntN(5000)))
		var total int64
		for _, name := range files(t, dir) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			total += info.Size()
		}
		if stats := s.Stats(); total > limit || total != stats.Bytes || stats.Runs < 2 && n > 2 {
			t.Fatalf("%d bytes after %d, stats %+v", total, n, stats)
		}
		if s.List()[0].ID != header(n).ID {
			t.Fatal("the last report was removed")
		}
	}
	before := files(t, dir)
	if err := s.Write(header(99), noise(limit)); !errors.Is(err, errTooLarge) {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("a report above the limit removed others (-want +got):\n%s", diff)
	}
	if last := s.List()[0]; last.ID != header(99).ID || last.FileBytes != 0 {
		t.Errorf("the run is not listed: %+v", last)
	}
}

func TestBodyThatCannotBeEncodedLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	s := open(t, Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Write(header(0), math.NaN()); err == nil {
		t.Error("NaN was written as JSON")
	}
	if names := files(t, dir); len(names) != 0 {
		t.Errorf("files are %v", names)
	}
	if got := s.Stats(); got.Failed != 1 || got.Written != 0 || got.Runs != 1 || got.Error == nil || !strings.Contains(log.String(), "not written") {
		t.Errorf("stats %+v, log %s", got, log.String())
	}
	write(t, s, header(1), nil)
	if got := s.Stats(); got.Error != nil {
		t.Errorf("the error is not cleared by the next report: %v", got.Error)
	}
}

func TestInvalidIDsAreRejected(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "reports")
	s := open(t, Options{Dir: dir})
	for _, id := range []string{
		"", ".", "..", "../x", "/etc/passwd", "a/b", `a\b`, "A", "a.b", "-a", "a\x00", "ä", "a b", strings.Repeat("a", 65), ".writing-a", "%2e%2e",
	} {
		if err := s.Write(Header{ID: id}, nil); err == nil {
			t.Errorf("%q was written", id)
		}
		if _, err := s.Open(id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if len(s.List()) != 0 {
		t.Errorf("list is %v", s.List())
	}
	if names := files(t, parent); !slices.Equal(names, []string{"reports"}) || len(files(t, dir)) != 0 {
		t.Errorf("files are %v, %v", names, files(t, dir))
	}
	if err := s.Write(Header{ID: strings.Repeat("a", 64)}, nil); err != nil {
		t.Error(err)
	}
}

func TestDuplicateIDIsRejected(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir()})
	write(t, s, header(0), "first")
	if err := s.Write(header(0), "second"); !errors.Is(err, errExists) || len(s.List()) != 1 {
		t.Errorf("error is %v, list %v", err, s.List())
	}
}

func TestIDsSortByTime(t *testing.T) {
	last := ""
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	for range 100 {
		epoch := epoch.Add(time.Duration(rng.Int64N(int64(time.Hour))))
		for range 10 {
			epoch = epoch.Add(time.Second)
			id := NewID(epoch, nil)
			if id <= last || !validID.MatchString(id) {
				t.Fatalf("%s after %s", id, last)
			}
			last = id
		}
		last = ""
	}
	if got := NewID(time.Date(2026, 11, 21, 23, 0, 0, 0, time.FixedZone("", 3600)), rand.New(rand.NewPCG(1, 2))); !strings.HasPrefix(got, "20261121t220000z-") {
		t.Errorf("id is %s", got)
	}
}

func TestStoreWithoutADirectoryWritesNoFile(t *testing.T) {
	s := open(t, Options{MaxRuns: 2})
	for n := range 5 {
		write(t, s, header(n), nil)
	}
	if got := s.List(); len(got) != 2 || got[0].ID != header(4).ID || got[0].FileBytes != 0 {
		t.Errorf("list is %+v", got)
	}
	if _, err := s.Open(header(4).ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	if got := s.Stats(); got.Written != 0 || got.Failed != 0 || got.Error != nil {
		t.Errorf("stats are %+v", got)
	}
}

func TestReloadChangesLimitsAndDirectory(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	s := open(t, Options{Dir: a})
	for n := range 5 {
		write(t, s, header(n), nil)
	}
	s.Configure(Options{Dir: a, MaxRuns: 2})
	if n := len(files(t, a)); n != 2 || len(s.List()) != 2 {
		t.Errorf("%d files, %d listed", n, len(s.List()))
	}
	s.Configure(Options{Dir: b})
	if len(s.List()) != 0 || len(files(t, a)) != 2 {
		t.Errorf("%v listed, %v left in the former directory", s.List(), files(t, a))
	}
	write(t, s, header(7), nil)
	if len(files(t, b)) != 1 {
		t.Error("the new directory is not used")
	}
}

func TestHeaderIsBoundedInMemory(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	h := header(0)
	h.Path, h.Peer, h.Result, h.Reason = long, long, "bad \xff", strings.Repeat("a", maxText-1)+"é"
	for range 1000 {
		h.Summary = append(h.Summary, Line{Quantity: long, Direction: long, Value: long})
	}
	dir := t.TempDir()
	write(t, open(t, Options{Dir: dir}), h, nil)
	got := open(t, Options{Dir: dir}).List()[0]
	if len(got.Summary) != maxLines || len(got.Path) != maxText || got.Path != long[:maxText] || got.Result != "bad \uFFFD" ||
		got.Reason != strings.Repeat("a", maxText-1) || len(got.Summary[1].Value) != maxText {
		t.Errorf("got %d lines, path of %d, result %q, reason of %d, value of %d", len(got.Summary), len(got.Path), got.Result, len(got.Reason), len(got.Summary[1].Value))
	}
}

func TestConcurrentWritesAndReads(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, MaxRuns: 5, MaxBytes: 20_000})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 15 {
				if err := s.Write(header(100*i+n), noise(500)); err != nil {
					t.Error(err)
				}
				for _, h := range s.List() {
					f, err := s.Open(h.ID)
					if errors.Is(err, fs.ErrNotExist) {
						continue // removed since List
					}
					if err != nil {
						t.Error(err)
						continue
					}
					if _, err := decodeHeader(f, h.ID); err != nil {
						t.Errorf("%s is truncated: %v", h.ID, err)
					}
					_ = f.Close()
				}
			}
		})
	}
	all.Wait()
	if n := len(files(t, dir)); n != 5 || s.Stats().Written != 60 {
		t.Errorf("%d files, stats %+v", n, s.Stats())
	}
}

func TestIncidentReportsUseAtMostAQuarter(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxRuns: 12, MaxBytes: 1 << 20})
	count := func() (runs, incident int) {
		for _, h := range s.List() {
			if h.Kind == Incident {
				incident++
			} else {
				runs++
			}
		}
		return runs, incident
	}
	for n := range 20 {
		h := header(n)
		if n >= 6 {
			h.Kind = Incident
		}
		write(t, s, h, noise(1000))
	}
	if runs, incident := count(); runs != 6 || incident != 3 {
		t.Errorf("%d runs and %d reports of incident among 12, want 6 and 3", runs, incident)
	}
	if newest := s.List()[0]; newest.ID != header(19).ID {
		t.Errorf("the newest is %s", newest.ID)
	}
	for n := 20; n < 24; n++ { // each near a quarter of a MiB, so only one fits
		h := header(n)
		h.Kind = Incident
		write(t, s, h, noise(150_000))
	}
	if runs, incident := count(); runs != 6 || incident != 1 {
		t.Errorf("%d runs and %d large reports of incident, want 6 and 1", runs, incident)
	}
}

// A reload sets the options that a store has already while a report is written: it does not wait for the disk.
func TestSameOptionsDoNotWaitForTheDisk(t *testing.T) {
	o := Options{Dir: t.TempDir(), MaxRuns: 5}
	s := Open(o)
	s.writing.Lock() // as Write has it
	defer s.writing.Unlock()
	configured := make(chan struct{})
	go func() {
		defer close(configured)
		s.Configure(o)
	}()
	select {
	case <-configured:
	case <-time.After(10 * time.Second):
		t.Error("Configure waits")
	}
}
