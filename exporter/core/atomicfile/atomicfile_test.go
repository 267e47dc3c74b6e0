package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestReplaceChangesContentAndModeOrNothing(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for content, mode := range map[string]fs.FileMode{"one": 0o600, "another": 0o644, "": 0o666} {
		if err := Replace(name, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		info, statErr := os.Stat(name)
		if errors.Join(err, statErr) != nil || string(got) != content || info.Mode() != mode {
			t.Errorf("%q and mode %v, %v; want %q and %v", got, info.Mode(), errors.Join(err, statErr), content, mode)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "directory"), []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if err := Replace(filepath.Join(dir, "none", "file"), []byte("x"), 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"directory", "file"}) {
		t.Errorf("left is %q", got)
	}
}

func TestUnfinishedFilesAreRemovedAndNoOthers(t *testing.T) {
	dir := t.TempDir()
	others := []string{
		"links.json.oneway-writing-1", ".links.json.oneway-writing-", ".links.json.oneway-writing-1a", ".links.json.oneway-writing-1.bak",
		".links.json-20261121", ".other.json.oneway-writing-1", "links.json",
	}
	for _, name := range append(others, ".links.json.oneway-writing-1234567890", ".links.json.oneway-writing-7") {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	directory, link := ".links.json.oneway-writing-33", ".links.json.oneway-writing-44"
	err := errors.Join(os.Mkdir(filepath.Join(dir, directory), 0o700), os.Symlink(filepath.Join(dir, others[0]), filepath.Join(dir, link)))
	if err != nil {
		t.Fatal(err)
	}
	RemoveUnfinished(filepath.Join(dir, "links.json"))
	want := append(others, directory, link)
	slices.Sort(want)
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("left is %q\nwant    %q", got, want)
	}
}
