package spool

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	suffix       = ".spool"
	nameDigits   = 20
	positionName = "position"
	// positionBytes: the number, and its CRC32C.
	positionBytes = 12
)

// directory is the files of a spool; the zero value has none.
type directory struct {
	path string   // empty: not open
	lock *os.File // the directory itself
	// root is the same directory, whatever its path leads to: a file is made and removed in no other one.
	root *os.Root
	file *os.File // of the position; nil: not open
	b    [positionBytes]byte
}

// open makes the directory and locks it, unless it has done so.
func (d *directory) open(path string) error {
	if d.path != "" {
		return nil
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.MkdirAll(path, 0o700)); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	f, err := root.Open(".")
	if err != nil {
		_ = root.Close() // the first error is returned
		return fmt.Errorf("spool: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_, _ = f.Close(), root.Close() // the error of the lock is returned
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%w: %s", ErrLocked, path)
		}
		return fmt.Errorf("spool: lock %s: %w", path, err)
	}
	d.path, d.lock, d.root = path, f, root
	return nil
}

func (d *directory) close() error {
	if d.path == "" {
		return nil
	}
	if d.file != nil {
		_ = d.file.Close() // every write has returned its error
	}
	err := errors.Join(d.lock.Close(), d.root.Close())
	*d = directory{}
	return err
}

// moved reports whether the path no longer leads to the directory: it was removed, renamed or replaced, or something is mounted there.
func (d *directory) moved() bool {
	if d.path == "" {
		return false
	}
	own, err := d.lock.Stat()
	now, missing := os.Stat(d.path)
	return err != nil || missing != nil || !os.SameFile(own, now)
}

// removed reports whether an open file has no name left.
func removed(f *os.File) bool {
	var s syscall.Stat_t
	return syscall.Fstat(int(f.Fd()), &s) == nil && s.Nlink == 0
}

// full reports whether an error of a write means that the disk is full or read-only.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// list returns the segments, oldest first. It ignores other files.
func (d *directory) list() (all []*segment, err error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	for _, e := range entries {
		digits, ours := strings.CutSuffix(e.Name(), suffix)
		first, err := strconv.ParseUint(digits, 10, 64)
		if !ours || len(digits) != nameDigits || err != nil || first >= maxNumber || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
		all = append(all, &segment{first: first, size: info.Size(), name: e.Name(), root: d.root})
	}
	slices.SortFunc(all, func(a, b *segment) int { return cmp.Compare(a.first, b.first) })
	return all, nil
}

// openFile opens a file of the spool. Where others can write to the directory, they could lead to another file by a symbolic link, or to
// a pipe, at which the opening would wait.
func (d *directory) openFile(name string, flags int) (*os.File, error) {
	f, err := d.root.OpenFile(name, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close() // nothing was written
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", name))
	}
	return f, nil
}

// create opens the file of a segment.
func (d *directory) create(g *segment) error {
	name := fmt.Sprintf("%0*d%s", nameDigits, g.first, suffix)
	f, err := d.openFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	g.name, g.root, g.data = name, d.root, f
	return nil
}

// position reads the number of the first point that is not delivered: false if it is unknown.
func (d *directory) position() (n uint64, known bool) {
	f, err := d.openFile(positionName, os.O_RDONLY)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	b := d.b[:]
	if _, err := io.ReadFull(f, b); err != nil || checksum(b[:8]) != binary.LittleEndian.Uint32(b[8:]) {
		return 0, false
	}
	n = binary.LittleEndian.Uint64(b)
	return n, n < maxNumber
}

// save writes the position over the previous one, which needs no space. If it cannot, the records since the last time are delivered
// again after a restart, at most those of a segment.
func (d *directory) save(n uint64) {
	if d.path == "" {
		return
	}
	if d.file == nil {
		f, err := d.openFile(positionName, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return
		}
		d.file = f
	}
	binary.LittleEndian.PutUint64(d.b[:], n)
	binary.LittleEndian.PutUint32(d.b[8:], checksum(d.b[:8]))
	_, _ = d.file.WriteAt(d.b[:], 0)
}
