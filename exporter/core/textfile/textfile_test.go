package textfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestByteOrderMarksAreNoPartOfTheText(t *testing.T) {
	for name, c := range map[string]struct{ content, want, err string }{
		"no mark":                      {"a\nb\n", "a\nb\n", ""},
		"mark of UTF-8":                {"\uFEFFa\nb\n", "a\nb\n", ""},
		"two files joined":             {"\uFEFFa\n\uFEFFb\n", "a\nb\n", ""},
		"only a mark":                  {"\uFEFF", "", ""},
		"joined without a line's end":  {"a\uFEFFb\n", "a\uFEFFb\n", ""}, // the parser of the file decides
		"UTF-16, little endian":        {"\xFF\xFEa\x00", "", "line 1: the text is UTF-16; save it as UTF-8"},
		"UTF-16, big endian":           {"\xFE\xFF\x00a", "", "line 1: the text is UTF-16; save it as UTF-8"},
		"bytes that are no characters": {"\x80\xFF\xFE\n", "\x80\xFF\xFE\n", ""},
	} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(file, 100, func(string, fs.FileInfo) error { return nil })
		if c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != file+": "+c.err) || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, c.want, c.err)
		}
	}
}

func TestEmptyNameIsSaid(t *testing.T) {
	if _, err := Open(""); err == nil || !strings.Contains(err.Error(), "the name of the file is empty") {
		t.Error(err)
	}
}

// TestFileOfAnotherUserNamesTheUser: keys that root wrote, and the service runs as another user.
func TestFileOfAnotherUserNamesTheUser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, nil, 0); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		if os.Geteuid() == 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0) // root reads every file
		}
		_, err := Open(file)
		done <- err
	}()
	err := <-done
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), self()+" may not read it") {
		t.Error(err)
	}
}
