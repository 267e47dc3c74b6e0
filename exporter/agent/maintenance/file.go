package maintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"oneway.example/exporter/core/atomicfile"
	"oneway.example/exporter/core/strictjson"
)

// stateVersion is the version of the file format; maxStateBytes exceeds any valid file.
const (
	stateVersion  = 1
	maxStateBytes = 64 << 20
)

// state is the content of the file.
type state struct {
	Version int `json:"version"`
	// Last is the number of the last ID, so that none is given twice.
	Last    int      `json:"last"`
	Windows []Window `json:"windows"`
}

// read reads a file; a missing one has no windows.
func read(name string) (windows []Window, last int, err error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // O_NONBLOCK: do not block on a named pipe
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("maintenance: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, 0, errors.Join(err, fmt.Errorf("maintenance: %s is not a regular file: remove it", name))
	}
	content, err := io.ReadAll(io.LimitReader(f, maxStateBytes+1))
	if err != nil {
		return nil, 0, fmt.Errorf("maintenance: %w", err)
	}
	if windows, last, err = parse(content); err != nil {
		err = fmt.Errorf("maintenance: %s is damaged (%w): remove it, and add the windows again", name, err)
	}
	return windows, last, err
}

// parse decodes what format encodes.
func parse(content []byte) ([]Window, int, error) {
	var s state
	if len(content) > maxStateBytes {
		return nil, 0, fmt.Errorf("it has more than %d bytes", maxStateBytes)
	}
	if err := strictjson.Decode(content, &s); err != nil {
		return nil, 0, err
	}
	if s.Version != stateVersion || s.Last < 0 || len(s.Windows) > MaxAdded {
		return nil, 0, fmt.Errorf("version %d, last number %d, %d windows", s.Version, s.Last, len(s.Windows))
	}
	seen := map[string]bool{}
	for i := range s.Windows {
		w := &s.Windows[i]
		if err := w.Check(); err != nil {
			return nil, 0, fmt.Errorf("windows[%d]: %w", i, err)
		}
		if w.ID == "" || seen[w.ID] {
			return nil, 0, fmt.Errorf("windows[%d] has the ID %q, empty or a second time", i, w.ID)
		}
		seen[w.ID] = true
	}
	return s.Windows, s.Last, nil
}

// write replaces the file, which persists over a loss of power.
func write(name string, windows []Window, last int) error {
	content, err := json.Marshal(state{stateVersion, last, windows})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return atomicfile.Replace(name, append(content, '\n'), 0o600)
}
