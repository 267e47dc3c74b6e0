// Package keyfile reads shared secrets from a file.
//
// Each line that is neither empty nor a comment (#) is one secret: the text itself, or bytes written as "hex:0123ab...".
// The first secret signs; all are accepted, so that a key can be replaced without interruption: add the new one as second
// line on all hosts, then swap the lines on all hosts, then remove the old one. Secrets are read only from files that only
// their owner and group can access: never from a flag or an environment variable, which other users of the host can read.
// They are never logged.
package keyfile

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unicode"
	"unicode/utf8"

	"oneway.example/exporter/core/textfile"
)

const (
	// maxBytes limits the size of a key file.
	maxBytes = 64 << 10
	// maxCertificates limits the size of a file of certificates; that of all public authorities has a quarter of a megabyte.
	maxCertificates = 4 << 20
)

// otherModeBits are the mode bits that let all users read, write or execute a file.
const otherModeBits fs.FileMode = 0o007

// ErrMode reports that all users may read, write or execute a file with a secret.
var ErrMode = errors.New("all users can access the secret in it; the mode's last digit must be 0: chmod 600, or 640 for a group")

// Check checks a file's mode without reading the file; the error wraps ErrMode or is that of stat.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("keyfile: %w", textfile.Located(err))
	}
	if err := check(path, info); err != nil {
		return fmt.Errorf("keyfile: %w", err)
	}
	return nil
}

func check(path string, info fs.FileInfo) error {
	if info.IsDir() {
		return fmt.Errorf("%s is a directory; it must be a file", path)
	}
	if mode := info.Mode(); mode&otherModeBits != 0 {
		return fmt.Errorf("%s has mode %#o: %w", path, mode.Perm(), ErrMode)
	}
	return nil
}

// Read reads a file with a secret; it fails with ErrMode if all users can access it.
func Read(path string) ([]byte, error) {
	content, err := textfile.Read(path, maxBytes, check)
	if err != nil {
		return nil, fmt.Errorf("keyfile: %w", err)
	}
	return content, nil
}

// public is the check of a file without secrets.
func public(string, fs.FileInfo) error { return nil }

// KeyPair reads a certificate (PEM, with its chain), and its key with Read.
func KeyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := textfile.Read(certFile, maxCertificates, public)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("keyfile: %w", err)
	}
	key, err := Read(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("keyfile: %s and %s: %w", certFile, keyFile, err)
	}
	return pair, nil
}

// CAs reads CA certificates (PEM).
func CAs(file string) (*x509.CertPool, error) {
	pem, err := textfile.Read(file, maxCertificates, public)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in PEM in it; such a file begins with -----BEGIN CERTIFICATE-----", file)
	}
	return pool, nil
}

// Load reads the secrets of a file; the first one signs. Errors have the file and the line, never the content.
func Load(path string) ([][]byte, error) {
	content, err := Read(path)
	if err != nil {
		return nil, err
	}
	keys, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("keyfile: %s: %w", path, err)
	}
	return keys, nil
}

// errEmpty reports a file without a secret.
var errEmpty = errors.New("it has no secret; write one per line")

// parse parses the content of a file of secrets.
func parse(content []byte) ([][]byte, error) {
	var keys [][]byte
	for i, line := range bytes.Split(content, []byte{'\n'}) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if r, found := invisible(line); found {
			return nil, fmt.Errorf("line %d: it has the invisible character %U; remove it, or write the bytes after \"hex:\"", i+1, r)
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
		return nil, errEmpty
	}
	return keys, nil
}

// invisible is the first character of a text that no editor shows, or shows as a space: a byte order mark, a zero-width or no-break
// space, a control character, a variation selector, a Hangul filler. A space and a tab are permitted. Bytes that
// are no UTF-8 are no characters.
func invisible(line []byte) (r rune, found bool) {
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		permitted := r == ' ' || r == '\t'
		if !permitted && unicode.In(r, unicode.Cc, unicode.Cf, unicode.White_Space, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return r, true
		}
		line = line[n:]
	}
	return 0, false
}
