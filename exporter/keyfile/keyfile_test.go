package keyfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseTakesTextAndHexAndSkipsComments(t *testing.T) {
	keys, err := parse([]byte("# new\n  hunter2 secret \n\nhex:00ff10\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || string(keys[0]) != "hunter2 secret" || string(keys[1]) != "\x00\xff\x10" {
		t.Errorf("keys = %q", keys)
	}
}

func TestParseNamesTheLineAndNotTheSecret(t *testing.T) {
	for _, bad := range []string{"good\nhex:0xzz", "good\nhex:abc", "good\nhex:"} {
		_, err := parse([]byte(bad))
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
	if _, err := Load(empty); !errors.Is(err, errEmpty) {
		t.Errorf("empty: %v", err)
	}
	if _, err := Load(huge); err == nil {
		t.Error("huge file was accepted")
	}
	if _, err := Load(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestFileThatEverybodyCanReachIsRefusedWithItsMode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o640: "", 0o660: "",
		0o644: "mode 0644", 0o604: "mode 0604", 0o602: "mode 0602", 0o601: "mode 0601", 0o666: "mode 0666",
	} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		keys, err := Load(file)
		_, pairErr := KeyPair(file, file)
		if want == "" {
			if err != nil || len(keys) != 1 || pairErr == nil || strings.Contains(pairErr.Error(), "mode") {
				t.Errorf("%v: %d keys, %v; as a certificate's key %v", mode, len(keys), err, pairErr)
			}
			continue
		}
		for _, err := range []error{err, pairErr} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "secret\n") {
				t.Errorf("%v: %v, want the file and %q", mode, err, want)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("hex:00\nplain"))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := parse(b)
		if (err == nil) != (len(keys) > 0) {
			t.Errorf("%d keys, error %v", len(keys), err)
		}
	})
}
