package report

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestIncompleteFilesOfACrashAreRemoved(t *testing.T) {
	dir := t.TempDir()
	first := open(t, Options{Dir: dir})
	for n := range 3 {
		write(t, first, header(n), noise(5000))
	}
	put := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(filepath.Join(dir, header(1).ID+suffix))
	if err != nil {
		t.Fatal(err)
	}
	put(temporary+"20261121t180000z-00000000", whole[:100])
	put("20261121t180001z-00000000"+suffix, nil)                                                   // renamed before its content was on disk
	put(header(1).ID+suffix, whole[:50])                                                           // cut in the header
	put("another"+suffix, zip(t, `{"header":{"id":"not-this"}}`))                                  // renamed by hand
	put("bomb"+suffix, zip(t, `{"header":{"id":"bomb","path":"`+strings.Repeat("a", 8<<20)+`"}}`)) // small on disk only
	put("order"+suffix, zip(t, `{"body":{},"header":{"id":"order","path":"p"}}`))                  // header not first
	var log bytes.Buffer
	s := open(t, Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	got := map[string]string{}
	for _, h := range s.List() {
		got[h.ID] = h.Result
	}
	want := map[string]string{
		header(0).ID: "completed", header(1).ID: Unreadable, header(2).ID: "completed",
		"another": Unreadable, "bomb": Unreadable, "order": Unreadable,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(files(t, dir)); n != len(want) {
		t.Errorf("files are %v", files(t, dir))
	}
	if n := strings.Count(log.String(), "cannot be read"); n != 4 {
		t.Errorf("logged %d times, want 4:\n%s", n, log.String())
	}
	// An unreadable report counts, and is removed by age.
	s.Configure(Options{Dir: dir, MaxRuns: 1})
	if names := files(t, dir); len(names) != 1 {
		t.Errorf("files are %v", names)
	}
}

// The header comes first.
func TestReportCutInItsBodyIsStillListed(t *testing.T) {
	dir := t.TempDir()
	write(t, open(t, Options{Dir: dir}), header(0), noise(100_000))
	file := filepath.Join(dir, header(0).ID+suffix)
	if err := os.Truncate(file, 50_000); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Dir: dir})
	if got := s.List(); len(got) != 1 || got[0].Result != "completed" || got[0].FileBytes != 50_000 {
		t.Errorf("list is %+v", got)
	}
	f, err := s.Open(header(0).ID)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, zipped); err == nil {
		t.Error("a truncated report was read without an error")
	}
}

func TestOnlyRegularFilesOfOursAreTouched(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "reports")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(parent, "outside"+suffix)
	if err := os.WriteFile(outside, zip(t, `{"header":{"id":"link"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(dir, "link"+suffix)),
		os.Symlink(outside, filepath.Join(dir, temporary+"link")),
		os.Mkdir(filepath.Join(dir, "directory"+suffix), 0o700),
		os.WriteFile(filepath.Join(dir, "UPPER"+suffix), noise(10), 0o600),
		os.WriteFile(filepath.Join(dir, "report.json"), noise(10), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := files(t, dir)
	s := open(t, Options{Dir: dir, MaxRuns: 1})
	if got := s.List(); len(got) != 0 {
		t.Errorf("list is %+v", got)
	}
	for _, id := range []string{"link", "directory", "UPPER", "report"} {
		if f, err := s.Open(id); err == nil {
			_ = f.Close()
			t.Errorf("%s was opened", id)
		}
	}
	for n := range 3 {
		write(t, s, header(n), nil)
	}
	after := slices.DeleteFunc(files(t, dir), func(name string) bool { return name == header(2).ID+suffix })
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDirectoryThatAppearsLaterIsUsed(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "reports")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where a directory must be
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := open(t, Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Write(header(1), nil); err == nil {
		t.Error("a report was written into a file")
	}
	if got := s.Stats(); got.Failed != 1 || got.Error == nil || got.Runs != 1 || !strings.Contains(log.String(), "tried again") {
		t.Errorf("stats %+v, log %s", got, log.String())
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	write(t, open(t, Options{Dir: dir}), header(0), nil) // of an earlier run of the program
	write(t, s, header(2), nil)
	if diff := cmp.Diff([]string{header(2).ID, header(1).ID, header(0).ID}, ids(s.List())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The headers of reports to be removed are not read.
func TestDirectoryOfManyIsBoundedInMemory(t *testing.T) {
	dir := t.TempDir()
	content := zip(t, `{"header":{"id":"x"}}`)
	for n := range 500 {
		id := NewID(epoch.Add(time.Duration(n)*time.Second), nil)
		if err := os.WriteFile(filepath.Join(dir, id+suffix), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	s := open(t, Options{Dir: dir, MaxRuns: 10, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if len(s.List()) != 10 || len(files(t, dir)) != 10 {
		t.Errorf("%d listed, %d files", len(s.List()), len(files(t, dir)))
	}
	if n := strings.Count(log.String(), "cannot be read"); n != 10 {
		t.Errorf("%d headers were read", n)
	}
}

func TestValuesOfADamagedFileAreLimited(t *testing.T) {
	deep, many := Values{}, Values{}
	deep.Set(1, "a", "b", "c", "d", "e")
	for n := range maxNumbers + 1 {
		many.Set(1, fmt.Sprint(n), "forward")
	}
	fits := Values{}
	fits.Set(0.031, "queue_delay_seconds", "forward", "0.5")
	fits.Set(2.5e6, "udp_throughput_bytes_per_second", "reverse")
	for name, c := range map[string]struct{ v, want Values }{
		"deep": {deep, nil}, "many": {many, nil}, "none": {nil, nil},
		"fits": {fits, Values{"queue_delay_seconds": map[string]any{"forward": map[string]any{"p50": 0.031}}, "udp_throughput_bytes_per_second": map[string]any{"reverse": 2.5e6}}},
	} {
		if diff := cmp.Diff(c.want, c.v.bounded()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
