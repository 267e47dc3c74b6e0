package report

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system of some KiB in a mount namespace of this test's thread; the
// thread ends with the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED, NOT PASSED: mounting needs root")
	}
	dir := t.TempDir()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Skipf("SKIPPED, NOT PASSED: no mount namespace: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFullDiskRemovesNoReport(t *testing.T) {
	dir := smallDisk(t, "64k")
	var log bytes.Buffer
	s := open(t, Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	write(t, s, header(0), noise(10_000))
	fill := filepath.Join(dir, "somebody-elses")
	err := os.WriteFile(fill, make([]byte, 1<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
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
	dir := smallDisk(t, "64k")
	write(t, open(t, Options{Dir: dir}), header(0), nil)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
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
