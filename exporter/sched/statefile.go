package sched

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// stateVersion is that of the file's format, maxStateBytes more than it can grow to.
const (
	stateVersion  = 1
	maxStateBytes = 16 << 20
)

// fileState is the file's content.
type fileState struct {
	Version int `json:"version"`
	// Days are a list of day.
	Days json.RawMessage `json:"days"`
	// Sum is the CRC-32 (IEEE 802.3) of Days as they stand in the file; nil: a file from
	// before there was one.
	Sum *uint32 `json:"crc32,omitempty"`
}

var errDamaged = errors.New("sched: damaged state file")

// readState reads and checks a file.
func readState(name string) (book, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it waits for no pipe
	if err != nil {
		return book{}, fmt.Errorf("sched: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return book{}, errors.Join(err, fmt.Errorf("sched: %s is not a regular file: remove it", name))
	}
	content, err := io.ReadAll(io.LimitReader(f, maxStateBytes+1))
	if err != nil {
		return book{}, fmt.Errorf("sched: %w", err)
	}
	return parseState(content)
}

// strictly decodes all of a JSON text, which may have no other fields.
func strictly(content []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows its end", errDamaged)
	}
	return nil
}

func parseState(content []byte) (book, error) {
	if len(content) > maxStateBytes {
		return book{}, fmt.Errorf("%w: it is larger than %d octets", errDamaged, maxStateBytes)
	}
	var s fileState
	if err := strictly(content, &s); err != nil {
		return book{}, err
	}
	if s.Version != stateVersion {
		return book{}, fmt.Errorf("%w: version %d; it must be %d", errDamaged, s.Version, stateVersion)
	}
	if sum := crc32.ChecksumIEEE(s.Days); s.Sum != nil && *s.Sum != sum {
		return book{}, fmt.Errorf("%w: its days have the CRC-32 %d, and not the %d that was written", errDamaged, sum, *s.Sum)
	}
	var days []*day
	if err := strictly(s.Days, &days); err != nil {
		return book{}, err
	}
	if err := checkDays(days); err != nil {
		return book{}, err
	}
	return book{days: days}, nil
}

func checkDays(days []*day) error {
	if len(days) > maxDays {
		return fmt.Errorf("%w: %d days; there must be %d at the most", errDamaged, len(days), maxDays)
	}
	seen := map[string]bool{}
	for _, d := range days {
		if d == nil || d.Used == nil || seen[d.Date] {
			return fmt.Errorf("%w: a day is empty or there twice", errDamaged)
		}
		if _, err := time.Parse(time.DateOnly, d.Date); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		if d.Unknown != filepath.Base(d.Unknown) && d.Unknown != "" {
			return fmt.Errorf("%w: %q is no file beside it", errDamaged, d.Unknown)
		}
		seen[d.Date] = true
		for name, used := range d.Used {
			if name == "" || used < 0 {
				return fmt.Errorf("%w: link %q has used %d", errDamaged, name, used)
			}
		}
	}
	return nil
}

// formatState is what parseState reads.
func formatState(days []*day) ([]byte, error) {
	raw, err := json.Marshal(days)
	if err != nil {
		return nil, err
	}
	sum := crc32.ChecksumIEEE(raw)
	content, err := json.Marshal(fileState{Version: stateVersion, Days: raw, Sum: &sum})
	return append(content, '\n'), err
}

// damagedSuffix is what a damaged file's name gets, maxDamaged how many are kept.
const (
	damagedSuffix = ".damaged"
	maxDamaged    = 9
)

// setAside gives a damaged file a name that nothing has, and returns that.
func setAside(name string) (aside string, err error) {
	for n := 1; n <= maxDamaged; n++ {
		aside = name + damagedSuffix
		if n > 1 {
			aside = fmt.Sprintf("%s-%d", aside, n)
		}
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return aside, os.Rename(name, aside)
		}
	}
	return "", fmt.Errorf("sched: %d damaged files are kept already; remove %s and those after it", maxDamaged, name+damagedSuffix)
}
