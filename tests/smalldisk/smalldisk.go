// Package smalldisk mounts a small file system for tests of a full or a read-only disk.
package smalldisk

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Mount mounts a file system of that size, such as "64k", in a mount namespace of this test's thread; the thread ends with the
// test. Only the test's goroutine sees it.
func Mount(t *testing.T, size string) string {
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

// Fill writes a file until the disk is full, and returns its name.
func Fill(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "somebody-elses")
	if err := os.WriteFile(name, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	return name
}

// ReadOnly makes the file system read-only.
func ReadOnly(t *testing.T, dir string) {
	t.Helper()
	remount(t, dir, unix.MS_RDONLY)
}

// Writable makes it writable again.
func Writable(t *testing.T, dir string) {
	t.Helper()
	remount(t, dir, 0)
}

func remount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
		t.Fatal(err)
	}
}
