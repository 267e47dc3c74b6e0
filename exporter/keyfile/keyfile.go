// Package keyfile reads shared secrets from a file.
//
// Each line that is neither empty nor a comment (#) is one secret: the text
// itself, or octets written as "hex:0123ab...". The first secret signs; all are
// accepted, so that a key is rotated without a gap: add the new one as second
// line everywhere, then swap the lines everywhere, then drop the old one.
// Secrets come from files only: never from a flag or an environment variable,
// which other users of the host can see. They are never logged.
package keyfile

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxBytes bounds a key file; a larger file is surely not one.
const maxBytes = 64 << 10

// Load reads the secrets of a file, first the one that signs. The error names
// the file and line, never its content.
func Load(path string) ([][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("keyfile: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("keyfile: %w", err)
	}
	if len(content) > maxBytes {
		return nil, fmt.Errorf("keyfile: %s: larger than %d octets: not a key file", path, maxBytes)
	}
	keys, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("keyfile: %s: %w", path, err)
	}
	return keys, nil
}

// ErrEmpty says that the file holds no secret.
var ErrEmpty = errors.New("no secret in it; write one a line")

// Parse reads the secrets from a file's content.
func Parse(content []byte) ([][]byte, error) {
	var keys [][]byte
	for i, line := range bytes.Split(content, []byte{'\n'}) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if digits, isHex := bytes.CutPrefix(line, []byte("hex:")); isHex {
			raw := make([]byte, hex.DecodedLen(len(digits)))
			if _, err := hex.Decode(raw, digits); err != nil || len(raw) == 0 {
				return nil, fmt.Errorf("line %d: after \"hex:\" an even number of hex digits is needed", i+1)
			}
			line = raw
		}
		keys = append(keys, bytes.Clone(line))
	}
	if len(keys) == 0 {
		return nil, ErrEmpty
	}
	return keys, nil
}
