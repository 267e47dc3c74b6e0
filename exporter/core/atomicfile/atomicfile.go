// Package atomicfile replaces files such that a reader, and a program that starts after a crash at any time, gets either the
// old or the new content.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// unfinished is a part of the names of Replace's temporary files; digits follow.
const unfinished = ".oneway-writing-"

// Replace writes a file with that mode, whatever the umask; its directory must exist. After its return the content
// persists over a loss of power. After an error the file is unchanged, unless only the directory could not be
// synchronized.
func Replace(name string, content []byte, mode fs.FileMode) error {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+unfinished+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error is returned
		return err
	}
	return syncDirectory(dir)
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// RemoveUnfinished removes the temporary files that Replace has left after a crash: only regular files with such a name.
// Another process that is writing the file at this moment gets an error.
func RemoveUnfinished(name string) {
	dir, prefix := filepath.Dir(name), "."+filepath.Base(name)+unfinished
	entries, _ := os.ReadDir(dir) // users of the directory report its errors
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), prefix)
		if ours && number != "" && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(dir, e.Name())) // harmless; the next start tries again
		}
	}
}
