package keyfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseTakesTextAndHexAndSkipsComments(t *testing.T) {
	keys, err := Parse([]byte("# new\n  hunter2 secret \n\nhex:00ff10\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || string(keys[0]) != "hunter2 secret" || string(keys[1]) != "\x00\xff\x10" {
		t.Errorf("keys = %q", keys)
	}
}

func TestParseNamesTheLineAndNotTheSecret(t *testing.T) {
	for _, bad := range []string{"good\nhex:0xzz", "good\nhex:abc", "good\nhex:"} {
		_, err := Parse([]byte(bad))
		if err == nil {
			t.Fatalf("%q was accepted", bad)
		}
		if !strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "zz") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLoadRefusesEmptyHugeAndMissingFiles(t *testing.T) {
	dir := t.TempDir()
	empty, huge := filepath.Join(dir, "empty"), filepath.Join(dir, "huge")
	if err := os.WriteFile(empty, []byte("# nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(huge, make([]byte, maxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(empty); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty: %v", err)
	}
	if _, err := Load(huge); err == nil {
		t.Error("huge file was accepted")
	}
	if _, err := Load(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("hex:00\nplain"))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := Parse(b)
		if (err == nil) != (len(keys) > 0) {
			t.Errorf("%d keys, error %v", len(keys), err)
		}
	})
}
