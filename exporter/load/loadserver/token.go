package loadserver

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"oneway.example/exporter/core/textfile"
	"oneway.example/exporter/load/loadcontrol"
)

// Token is one line of a tokens file: a name, its credential and its limits.
type Token struct {
	// Name is a metric label, unique in a file: letters, digits, _ . -, at most 64.
	Name string
	// Hash is the SHA-256 of the token's text; unused with Certificate.
	Hash [sha256.Size]byte
	// Certificate: the client presents a certificate with this common name instead.
	Certificate bool
	// Limits of the token; LeftToday is unused.
	Limits loadcontrol.Limits
}

// maxTokenName limits the characters of a token's name.
const maxTokenName = 64

var tokenName = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,%d}$`, maxTokenName-1))

const (
	// tokenPrefix identifies tokens for secret scanners.
	tokenPrefix = "owt_"
	tokenBytes  = 32
	// maxTokensFile is the most bytes of the file; thousands of tokens fit.
	maxTokensFile  = 1 << 20
	hashPrefix     = "sha256:"
	certCredential = "certificate"
)

// NewToken generates a token of 256 random bits. The text is for the client, the Token for the load
// server's file, which does not reveal the text.
func NewToken(name string, limits loadcontrol.Limits) (t Token, text string, err error) {
	if !tokenName.MatchString(name) {
		return Token{}, "", errTokenName(name)
	}
	var secret [tokenBytes]byte
	_, _ = rand.Read(secret[:]) // crypto/rand.Read never fails (Go 1.24)
	text = tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	return Token{Name: name, Hash: sha256.Sum256([]byte(text)), Limits: limits}, text, nil
}

func errTokenName(name string) error {
	return fmt.Errorf("loadserver: token name %q: it must begin with a letter or digit, and have at most %d letters, digits, and _ . -", name, maxTokenName)
}

// String returns the token's line of a file.
func (t Token) String() string {
	words := []string{t.Name, hashPrefix + hex.EncodeToString(t.Hash[:])}
	if t.Certificate {
		words[1] = certCredential
	}
	return strings.Join(append(words, formatLimits(t.Limits)...), " ")
}

// ParseTokens parses a tokens file. The error has the line number and no hash.
func ParseTokens(content []byte) ([]Token, error) {
	var all []Token
	names := map[string]bool{}
	for i, line := range strings.Split(string(content), "\n") {
		text, _, _ := strings.Cut(line, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		t, err := parseToken(words)
		if err == nil && names[t.Name] {
			err = fmt.Errorf("the name %q stands in the file already", t.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		names[t.Name] = true
		all = append(all, t)
	}
	return all, nil
}

// errTokenLine describes the format of a line.
var errTokenLine = errors.New(`a token is a name, "sha256:" and 64 hex digits (or the word "certificate"), and limits; "oneway token new" writes such lines`)

func parseToken(words []string) (t Token, err error) {
	if len(words) < 2 {
		return t, errTokenLine
	}
	t.Name = words[0]
	if !tokenName.MatchString(t.Name) {
		return t, errTokenName(t.Name)
	}
	if digits, hashed := strings.CutPrefix(words[1], hashPrefix); hashed {
		raw, err := hex.DecodeString(digits)
		if err != nil || copy(t.Hash[:], raw) != sha256.Size || len(raw) != sha256.Size {
			return t, errTokenLine
		}
	} else if t.Certificate = words[1] == certCredential; !t.Certificate {
		return t, errTokenLine
	}
	t.Limits, err = ParseLimits(words[2:])
	return t, err
}

// byText returns the token with this text. It compares all tokens in constant time.
func byText(all []Token, text string) (Token, bool) {
	hash := sha256.Sum256([]byte(text))
	found := -1
	for i := range all {
		if !all[i].Certificate && subtle.ConstantTimeCompare(all[i].Hash[:], hash[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Token{}, false
	}
	return all[found], true
}

// AppendToken appends a token to a file, which it creates (mode 0600) if it does not exist. A duplicate
// name is an error.
func AppendToken(file string, t Token) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("loadserver: %w", err)
	}
	defer f.Close()
	line := t.String() + "\n"
	content, err := textfile.Limited(f, maxTokensFile)
	if err == nil {
		content, err = textfile.Decode(content)
	}
	if err == nil {
		var all []Token
		all, err = ParseTokens(content)
		if err == nil && slices.ContainsFunc(all, func(other Token) bool { return other.Name == t.Name }) {
			err = fmt.Errorf("the name %q stands in the file already; choose another one, or remove its line first", t.Name)
		}
	}
	if err == nil {
		if len(content) > 0 && content[len(content)-1] != '\n' {
			line = "\n" + line
		}
		_, err = ParseTokens(append(content, line...))
	}
	if err != nil {
		return fmt.Errorf("loadserver: %s: %w", file, err)
	}
	if _, err = f.WriteString(line); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("loadserver: %w", err)
	}
	return nil
}
