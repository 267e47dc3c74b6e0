package vmlab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// tail is a file of JSON lines that grows, and what it held so far.
type tail[T any] struct {
	file string

	mu   sync.Mutex
	read int64
	all  []T
}

// get reads what is new and returns everything. What it returned before is not
// changed by it.
func (t *tail[T]) get() ([]T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := os.Open(t.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // nothing yet
	}
	if err != nil {
		return nil, fmt.Errorf("vmlab: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(t.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("vmlab: %w", err)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("vmlab: %w", err)
	}
	for {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			return t.all, nil
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("vmlab: %s at byte %d: %w", t.file, t.read, err)
		}
		t.all = append(t.all, v)
		t.read += int64(len(line)) + 1
		b = rest
	}
}
