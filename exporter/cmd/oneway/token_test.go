package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneway.example/exporter/load/loadserver"
)

func TestTokenIsPrintedOnceAndItsHashIsStored(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	f := tokenFlags{file: file, name: "berlin", limits: map[string]*string{"rate": new("20Mbit"), "duration": new("5m"), "sessions": new("2"), "per-day": new("10GB")}}
	var out, said bytes.Buffer
	if err := f.run(&out, &said); err != nil {
		t.Fatal(err)
	}
	text, rest, _ := strings.Cut(out.String(), "\n")
	explained := said.String()
	if !strings.HasPrefix(text, "owt_") || rest != "" || strings.Contains(explained, text) {
		t.Errorf("not the token alone on standard output:\n%s\n%s", out.String(), explained)
	}
	for _, want := range []string{"token_file", "tokens_file", file, "chmod 600"} {
		if !strings.Contains(explained, want) {
			t.Errorf("no %s in the explanation:\n%s", want, explained)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil || bytes.Contains(content, []byte(text)) {
		t.Errorf("the file is %q, %v", content, err)
	}
	all, err := loadserver.ParseTokens(content)
	if err != nil || len(all) != 1 || all[0].Limits.BytesPerSecond != 2.5e6 || all[0].Limits.BytesPerDay != 10e9 {
		t.Errorf("tokens %+v, %v", all, err)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if err := f.run(&out, &said); err == nil || !strings.Contains(err.Error(), `"berlin" stands in the file already`) {
		t.Errorf("the same name again: %v", err)
	}
}

// TestTokensThatOnlyTheirOwnerCanReadAreSaid: the package's load server has another user.
func TestTokensThatOnlyTheirOwnerCanReadAreSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o640: false} {
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		f := tokenFlags{file: file, name: "berlin"}
		if err := f.run(&out, &said); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(said.String(), "chgrp oneway "+file+" && chmod 640 "+file); got != want {
			t.Errorf("mode %v: printed\n%s", mode, said.String())
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTokenInAFileOfItsOwnIsNotPrinted(t *testing.T) {
	dir := t.TempDir()
	f := tokenFlags{file: filepath.Join(dir, "tokens"), out: filepath.Join(dir, "token"), name: "berlin"}
	var out, said bytes.Buffer
	if err := f.run(&out, &said); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.out)
	if err != nil || !bytes.HasPrefix(text, []byte("owt_")) || out.Len() > 0 || strings.Contains(said.String(), "owt_") || !strings.Contains(said.String(), f.out) {
		t.Errorf("%q, %v; printed\n%s%s", text, err, out.String(), said.String())
	}
	// A failure leaves no token that no load server accepts, and replaces no other token.
	f.out = filepath.Join(dir, "again")
	if err := f.run(&out, &said); err == nil {
		t.Error("the same name again was accepted")
	}
	if _, err := os.Stat(f.out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file for a refused token: %v", err)
	}
	f.name, f.out = "hamburg", filepath.Join(dir, "token")
	if err := f.run(&out, &said); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an existing file: %v", err)
	}
	if now, err := os.ReadFile(f.out); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the first token is %q now, %v", now, err)
	}
}

func TestTokenWithoutAFilePrintsTheLineToCopy(t *testing.T) {
	var out, said bytes.Buffer
	if err := (&tokenFlags{name: "berlin", limits: map[string]*string{"rate": new("1Mbit")}}).run(&out, &said); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if all, err := loadserver.ParseTokens([]byte(lines[len(lines)-1])); err != nil || len(all) != 1 || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("the last line is not a token, %v:\n%s%s", err, out.String(), said.String())
	}
}

func TestWrongTokenFlagsAreUsageErrors(t *testing.T) {
	for _, f := range []tokenFlags{{name: "a b"}, {name: "a", limits: map[string]*string{"rate": new("fast")}}, {name: "a", limits: map[string]*string{"duration": new("5")}}, {name: "a", limits: map[string]*string{"sessions": new("-1")}}, {name: "a", limits: map[string]*string{"per-day": new("all")}}} {
		err := f.run(&bytes.Buffer{}, &bytes.Buffer{})
		if _, ok := errors.AsType[usageError](err); !ok {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
