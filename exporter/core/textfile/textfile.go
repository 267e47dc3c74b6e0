// Package textfile reads files that people write: configurations, keys, tokens, passwords, certificates.
package textfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Byte order marks (Unicode 16.0, table 23-5).
var (
	mark     = []byte("\uFEFF")
	utf16Big = []byte{0xFE, 0xFF}
	utf16Low = []byte{0xFF, 0xFE}
)

// errUTF16 reports a file in UTF-16, which is the encoding of no file of this program.
var errUTF16 = errors.New("line 1: the text is UTF-16; save it as UTF-8")

// errNoName reports an empty name, as an unset variable of a shell gives.
var errNoName = errors.New("the name of the file is empty; /dev/stdin is standard input")

// Open opens a file for reading. A named pipe that nobody writes to is empty: os.Open would wait without end.
func Open(path string) (*os.File, error) {
	if path == "" {
		return nil, errNoName
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: %s may not read it, or not enter its directory; run this as a user that may, or let a group of this one read it (chgrp, chmod 640)", Located(err), self())
	}
	if err != nil {
		return nil, Located(err)
	}
	return f, nil
}

// self is the user of this process, for a person.
func self() string {
	id := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(id); err == nil {
		return "the user " + u.Username
	}
	return "the user with ID " + id
}

// Located is the error of a file with its absolute path, if its name is relative.
func Located(err error) error {
	failed, ok := errors.AsType[*fs.PathError](err)
	if !ok || filepath.IsAbs(failed.Path) {
		return err
	}
	abs, unknown := filepath.Abs(failed.Path)
	if unknown != nil {
		return err
	}
	return fmt.Errorf("%w (%q is relative to the working directory)", &fs.PathError{Op: failed.Op, Path: abs, Err: failed.Err}, failed.Path)
}

// Read reads a file of at most limit bytes that passes a check of its type and mode, and decodes it.
func Read(path string, limit int64, check func(path string, info fs.FileInfo) error) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = check(path, info)
	}
	if err != nil {
		return nil, err
	}
	content, err := Limited(f, limit)
	if err == nil {
		content, err = Decode(content)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// Limited reads all of r, at most limit bytes.
func Limited(r io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	return content, err
}

// Decoded is Decode for what is not read at once; only a mark at its beginning is left out.
func Decoded(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	begin, _ := in.Peek(len(mark)) // an error of reading is the caller's
	text, err := Decode(begin)
	_, _ = in.Discard(len(begin) - len(text)) // it was peeked
	return in, err
}

// Decode is a text without the byte order marks at the beginning of its lines: editors of other systems begin a file with one, and joined
// files keep all their marks. UTF-16 is an error.
func Decode(content []byte) ([]byte, error) {
	if bytes.HasPrefix(content, utf16Big) || bytes.HasPrefix(content, utf16Low) {
		return nil, errUTF16
	}
	if !bytes.Contains(content, mark) {
		return content, nil
	}
	content = bytes.TrimPrefix(content, mark)
	return bytes.ReplaceAll(content, append([]byte{'\n'}, mark...), []byte{'\n'}), nil
}
