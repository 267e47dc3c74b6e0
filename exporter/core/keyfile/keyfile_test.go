package keyfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

// TestInvisibleCharactersAreNoPartOfASecret: the other end has the same text without them.
func TestInvisibleCharactersAreNoPartOfASecret(t *testing.T) {
	for content, want := range map[string]string{
		"\uFEFFsecret\n": "secret", "\uFEFFhex:00ff\n": "\x00\xff", "\uFEFF# two\n\uFEFFsecret\r\n": "secret", "\u00A0secret\n": "secret",
		"\x80\xFFraw\n": "\x80\xFFraw", "pass w\u00F6rd\n": "pass w\u00F6rd",
		"secret\uFEFF\n": "", "\u200Bsecret\n": "", "se\u00ADcret\n": "", "secret\u200E\n": "", "\xFF\xFEs\x00": "",
		"a\u00A0b\n": "", "a\x00b\n": "", "\x1B[0msecret\n": "", "a\uFE0Fb\n": "", "a\u3164b\n": "", "a\u115Fb\n": "", "a\uFFA0b\n": "", "a\u2003b\n": "",
		"a\u0085b\n": "", "a\U000E0100b\n": "", "a\u034Fb\n": "", "hex:\uFEFF00ff\n": "", "a\tb c\n": "a\tb c", "\u97D3\uAD6D\n": "\u97D3\uAD6D",
	} {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		switch keys, err := Load(file); {
		case want == "" && (err == nil || !strings.Contains(err.Error(), "line 1: ")):
			t.Errorf("%q: %q, %v; want an error of line 1", content, keys, err)
		case want != "" && (err != nil || len(keys) != 1 || string(keys[0]) != want):
			t.Errorf("%q: %q, %v; want %q", content, keys, err, want)
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

// TestPipeWithoutAWriterEndsNoReload: a read that waits without end would stop the agent's reloads and its end.
func TestPipeWithoutAWriterEndsNoReload(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for name, f := range map[string]func() error{
		"Load":    func() error { _, err := Load(pipe); return err },
		"CAs":     func() error { _, err := CAs(pipe); return err },
		"KeyPair": func() error { _, err := KeyPair(pipe, pipe); return err },
	} {
		go func() { done <- f() }()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s accepted an empty pipe", name)
			}
		case <-time.After(10 * time.Second): // much longer than reading takes
			t.Fatalf("%s waits for a writer", name)
		}
	}
}

func TestPipeWithAWriterIsRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.WriteString("secret\n") // a failure fails Load
		_ = w.Close()
	}()
	if keys, err := Load(fmt.Sprintf("/proc/self/fd/%d", r.Fd())); err != nil || len(keys) != 1 || string(keys[0]) != "secret" {
		t.Errorf("%q, %v", keys, err)
	}
}

func TestFileOfCertificatesWithoutEndIsAnError(t *testing.T) {
	for name, f := range map[string]func() error{
		"CAs":     func() error { _, err := CAs("/dev/zero"); return err },
		"KeyPair": func() error { _, err := KeyPair("/dev/zero", "/dev/zero"); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "larger than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
