package responder

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// tokens is a tokens file that is read again when it changes.
type tokens struct {
	file string
	log  *slog.Logger

	mu   sync.Mutex
	seen version
	all  []Token
}

// newTokens reads the file for the first time; what is wrong then is an error.
func newTokens(file string, log *slog.Logger) (*tokens, error) {
	t := &tokens{file: file, log: log}
	v, all, err := loadTokens(file)
	if err != nil {
		return nil, fmt.Errorf("responder: tokens file: %w", err)
	}
	t.seen, t.all = v, all
	return t, nil
}

// current are the tokens in force. A file that cannot be read leaves no token in force: a
// token must be revocable whatever else is wrong. One that makes no sense, which may be
// somebody's half-written edit, leaves those before it in force.
func (t *tokens) current() []Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, err := versionOf(t.file)
	if err == nil && v == t.seen {
		return t.all
	}
	changed := v != t.seen
	t.seen = v
	if err != nil {
		t.all = nil
		if changed {
			t.log.Error("Tokens file cannot be read, no token is accepted", "file", t.file, "err", err)
		}
		return nil
	}
	v, all, err := loadTokens(t.file)
	t.seen = v
	if err != nil {
		t.log.Error("Tokens file not taken over, the tokens before stay in force", "file", t.file, "err", err, "tokens", len(t.all))
		return t.all
	}
	t.log.Info("Tokens read again", "file", t.file, "tokens", len(all))
	t.all = all
	return all
}

// named is the token of that name as it is in force now.
func (t *tokens) named(name string) (Token, bool) {
	for _, one := range t.current() {
		if one.Name == name {
			return one, true
		}
	}
	return Token{}, false
}

func loadTokens(file string) (version, []Token, error) {
	f, err := os.Open(file)
	if err != nil {
		return version{}, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return version{}, nil, err
	}
	v := versionIn(info)
	if info.Mode().Perm()&0o002 != 0 {
		return v, nil, fmt.Errorf("%s: anybody may write to it (mode %#o); take that away: chmod 600", file, info.Mode().Perm())
	}
	content, err := readSome(f)
	if err != nil {
		return v, nil, fmt.Errorf("%s: %w", file, err)
	}
	all, err := ParseTokens(content)
	if err != nil {
		return v, nil, fmt.Errorf("%s: %w", file, err)
	}
	return v, all, nil
}

// readSome reads a file that must not be large.
func readSome(f io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(f, maxTokensFile+1))
	if err == nil && len(content) > maxTokensFile {
		err = fmt.Errorf("larger than %d octets", maxTokensFile)
	}
	return content, err
}

// version tells one content of a file from another. The zero value is no file.
type version struct {
	modified time.Time
	size     int64
	info     fileID
}

func versionOf(file string) (version, error) {
	info, err := os.Stat(file)
	if err != nil {
		return version{}, err
	}
	return versionIn(info), nil
}

func versionIn(info fs.FileInfo) version {
	return version{modified: info.ModTime(), size: info.Size(), info: idOf(info)}
}
