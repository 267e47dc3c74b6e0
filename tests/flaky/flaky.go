// Package flaky keeps the first output of flaky tests: of those that failed, and passed when they were run once more,
// alone, except while the machine stood still. All programs that run tests write to one directory, build/flaky, which CI keeps.
package flaky

import (
	"os"
	"path/filepath"
	"regexp"
)

// Dir is the directory below the root of the checkout.
const Dir = "build/flaky"

// Max is the largest number of flaky tests in a run that passes.
const Max = 3

// Kept is the files of one program in the directory.
type Kept struct {
	dir, prefix string
	// Files are the files that this run has added.
	Files []string
}

// Open removes the files that an earlier run of the program has left in dir. The names of its files begin with its name.
func Open(dir, program string) (*Kept, error) {
	k := &Kept{dir: dir, prefix: program + "-"}
	old, err := filepath.Glob(filepath.Join(dir, k.prefix+"*.txt"))
	if err != nil {
		return nil, err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	return k, os.MkdirAll(dir, 0o755)
}

// unsafe are the characters of a test's name that a file name does not have.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Add writes the first output of a test to a file of its own, and returns the file.
func (k *Kept) Add(test, output string) (file string, err error) {
	file = filepath.Join(k.dir, k.prefix+unsafe.ReplaceAllString(test, "-")+".txt")
	k.Files = append(k.Files, file)
	return file, os.WriteFile(file, []byte(output), 0o644)
}
