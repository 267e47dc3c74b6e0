package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// release writes a release of one file in a directory, and its public key.
func release(t *testing.T, file, text string) (name, key string) {
	t.Helper()
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sums := fmt.Appendf(nil, "%x  another.deb\n%x  %s\n", sha256.Sum256(nil), sha256.Sum256([]byte(text)), file)
	for name, content := range map[string][]byte{file: []byte(text), "SHA256SUMS": sums, "SHA256SUMS.minisig": minisign.Sign(private, sums), "key.pub": []byte(public.String())} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, file), filepath.Join(dir, "key.pub")
}

func TestVerifyRefusesWhatIsNotOfTheRelease(t *testing.T) {
	const file = "oneway_0.1.0-1_amd64.deb"
	change := func(at string, do func([]byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			name := filepath.Join(dir, at)
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, do(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string // part of the error; empty: none
	}{
		"as released":        {func(*testing.T, string) {}, ""},
		"one bit of it":      {change(file, flip), "it is not the file of the release"},
		"shorter":            {change(file, func(b []byte) []byte { return b[:len(b)-1] }), "it is not the file of the release"},
		"one bit of the sum": {change("SHA256SUMS", flip), "does not have a signature of this key"},
		"one bit of the signature": {change("SHA256SUMS.minisig", func(b []byte) []byte {
			return bytes.Replace(b, []byte("\nR"), []byte("\nS"), 1)
		}), "does not have a signature of this key"},
		"another key": {func(t *testing.T, dir string) {
			_, other := release(t, file, "")
			text, err := os.ReadFile(other)
			if err != nil {
				t.Fatal(err)
			}
			change("key.pub", func([]byte) []byte { return text })(t, dir)
		}, "does not have a signature of this key"},
		"no list":      {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "SHA256SUMS")) }, "SHA256SUMS: no such file"},
		"no signature": {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "SHA256SUMS.minisig")) }, "SHA256SUMS.minisig: no such file"},
		"no key":       {change("key.pub", func([]byte) []byte { return []byte("x") }), "key.pub is no public key of minisign"},
	} {
		t.Run(name, func(t *testing.T) {
			file, key := release(t, file, "the package")
			c.change(t, filepath.Dir(file))
			var out strings.Builder
			err := verify(&out, key, []string{file})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || (err == nil) != (out.String() == file+": ok\n") {
				t.Errorf("got %v, %q; want %q", err, out.String(), c.want)
			}
		})
	}
	file1, key := release(t, "one.deb", "1")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file1), "two.deb"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := verify(&out, key, []string{file1, filepath.Join(filepath.Dir(file1), "two.deb")})
	if err == nil || !strings.Contains(err.Error(), "two.deb: ") || !strings.Contains(err.Error(), "does not name it") || out.String() != file1+": ok\n" {
		t.Errorf("two files, one of the release: %v, %q", err, out.String())
	}
}
