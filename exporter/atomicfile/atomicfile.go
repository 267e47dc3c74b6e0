// Package atomicfile replaces files such that a reader, and whoever starts after a crash at any
// time, finds the old content or the new.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// unfinished is in the names of files that Replace has not finished; digits follow.
const unfinished = ".oneway-writing-"

// Replace writes a file with that mode, whatever the umask; its directory must be there. When it has
// returned, the content outlives a loss of power. After an error the file is as it was,
// unless only the directory could not be synchronized.
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
		_ = os.Remove(f.Name()) // what is wrong is told
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

// RemoveUnfinished removes what Replace has left of a file where a crash came before its
// end: regular files of such a name and no others. Another process that is writing the file
// at this moment is told so by its own error.
func RemoveUnfinished(name string) {
	dir, prefix := filepath.Dir(name), "."+filepath.Base(name)+unfinished
	entries, _ := os.ReadDir(dir) // a directory that cannot be read is told by whoever needs it
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), prefix)
		if ours && number != "" && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(dir, e.Name())) // it is in the way of nothing, and the next start tries again
		}
	}
}
