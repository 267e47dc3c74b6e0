package textfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
