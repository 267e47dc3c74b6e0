package report

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/tests/smalldisk"
)

func TestFullDiskRemovesNoReport(t *testing.T) {
	dir := smalldisk.Mount(t, "64k")
	var log bytes.Buffer
	s := open(t, Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	write(t, s, header(0), noise(10_000))
	fill := smalldisk.Fill(t, dir)
	before := files(t, dir)
	if err := s.Write(header(1), noise(10_000)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.Stats(); got.Failed != 1 || got.Written != 1 || got.Error == nil || got.Runs != 2 {
		t.Errorf("stats are %+v", got)
	}
	if _, err := s.Open(header(0).ID); err != nil {
		t.Error(err)
	}
	if err := s.Write(header(3), noise(10_000)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error is %v", err)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	write(t, s, header(2), noise(10_000))
	write(t, s, header(4), nil)
	if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "cannot be written") || !strings.Contains(got, "are written again") {
		t.Errorf("want one line at the first failure and one at the first success, got\n%s", got)
	}
	if got := open(t, Options{Dir: dir}).List(); len(got) != 3 || slices.ContainsFunc(got, func(h Header) bool { return h.Result != "completed" }) {
		t.Errorf("list is %+v", got)
	}
}

func TestReadOnlyDirectoryIsListed(t *testing.T) {
	dir := smalldisk.Mount(t, "64k")
	write(t, open(t, Options{Dir: dir}), header(0), nil)
	smalldisk.ReadOnly(t, dir)
	var log bytes.Buffer
	s := open(t, Options{Dir: dir, MaxRuns: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if got := s.List(); len(got) != 1 || got[0].ID != header(0).ID {
		t.Errorf("list is %+v", got)
	}
	if err := s.Write(header(1), nil); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), header(1).ID) {
		t.Errorf("error is %v", err)
	}
	if got := s.List(); len(got) != 1 || got[0].ID != header(1).ID || got[0].FileBytes != 0 {
		t.Errorf("the run is not listed: %+v", got)
	}
	if got := s.Stats(); got.Failed != 1 || got.Removed != 0 {
		t.Errorf("stats are %+v", got)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 {
		t.Errorf("want one line, got\n%s", got)
	}
}
