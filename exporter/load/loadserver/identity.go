package loadserver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/core/atomicfile"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/textfile"
	"oneway.example/exporter/load/loadcontrol"
)

// identity is the load server's certificate: from files, which are reloaded when they change, or
// self-signed with a key in the state directory.
type identity struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex
	seen     [2]version
	current  *tls.Certificate
	selfmade bool
}

// keyName is the file of the generated key in the state directory.
const keyName = "load-server.key"

func newIdentity(o Options, now time.Time, log *slog.Logger) (*identity, error) {
	i := &identity{certFile: o.CertFile, keyFile: o.KeyFile, log: log}
	if o.CertFile != "" {
		return i, i.load()
	}
	key, err := ownKey(filepath.Join(o.StateDir, keyName))
	if err != nil {
		return nil, fmt.Errorf("loadserver: generated key: %w", err)
	}
	i.current, err = selfSigned(key, now)
	i.selfmade = true
	return i, err
}

// load reads the files; on an error the previous certificate stays.
func (i *identity) load() error {
	i.seen = i.versions()
	pair, err := keyfile.KeyPair(i.certFile, i.keyFile)
	if err != nil {
		return fmt.Errorf("loadserver: certificate: %w", err)
	}
	i.current = &pair
	return nil
}

func (i *identity) versions() [2]version {
	return [2]version{versionOf(i.certFile), versionOf(i.keyFile)} // a missing file differs from an existing one
}

// certificate implements tls.Config.GetCertificate.
func (i *identity) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.selfmade && i.versions() != i.seen {
		if err := i.load(); err != nil {
			i.log.Error("New certificate not loaded; the previous one stays in use", "err", err)
		} else {
			i.log.Info("Certificate reloaded", "file", i.certFile)
		}
	}
	return i.current, nil
}

// pin returns the pin of the key; it does not depend on the certificate.
func (i *identity) pin() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return loadcontrol.PinOf(i.current.Leaf)
}

// ownKey reads the key, or generates it (mode 0600).
func ownKey(file string) (*ecdsa.PrivateKey, error) {
	content, err := keyfile.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(file)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s: not a key in PEM; remove it to generate a new one", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	own, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: not an ECDSA key; remove it to generate a new one", file)
	}
	return own, nil
}

func makeKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return nil, err
	}
	atomicfile.RemoveUnfinished(file)
	return key, atomicfile.Replace(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// selfSigned makes a certificate at each start: clients verify only its key.
func selfSigned(key crypto.Signer, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "oneway load server"},
		NotBefore:    now.AddDate(-1, 0, 0), // the clocks of clients may be wrong
		NotAfter:     now.AddDate(20, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err == nil {
		template, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("loadserver: certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: template}, nil
}

// tokens is a tokens file that is reloaded when it changes.
type tokens struct {
	file string
	log  *slog.Logger

	mu   sync.Mutex
	seen version
	all  []Token
}

// newTokens reads the file for the first time; an invalid file is an error.
func newTokens(file string, log *slog.Logger) (*tokens, error) {
	t := &tokens{file: file, log: log, seen: versionOf(file)}
	var err error
	if t.all, err = loadTokens(file); err != nil {
		return nil, err
	}
	return t, nil
}

// current returns the valid tokens. If the file is missing, there is none, so that tokens can always
// be revoked. If it cannot be read or is invalid, such as during an edit, the previous tokens stay
// valid.
func (t *tokens) current() []Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := versionOf(t.file)
	if v == t.seen {
		return t.all
	}
	t.seen = v
	switch all, err := loadTokens(t.file); {
	case v == version{}:
		t.all = nil
		t.log.Error("Tokens file is missing; no token is accepted", "file", t.file, "err", err)
	case err != nil:
		if errors.As(err, new(*fs.PathError)) {
			t.seen.bytes = -1 // read it again at the next request
		}
		t.log.Error("Tokens file not loaded; the previous tokens stay valid", "file", t.file, "err", err, "tokens", len(t.all))
	default:
		t.log.Info("Tokens reloaded", "file", t.file, "tokens", len(all))
		t.all = all
	}
	return t.all
}

// named returns the valid token of that name.
func (t *tokens) named(name string) (Token, bool) {
	for _, one := range t.current() {
		if one.Name == name {
			return one, true
		}
	}
	return Token{}, false
}

func loadTokens(file string) ([]Token, error) {
	content, err := textfile.Read(file, maxTokensFile, writable)
	if err != nil {
		return nil, err
	}
	all, err := ParseTokens(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// writable refuses a file that all users can change.
func writable(file string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%s: mode is %#o; it must not be writable by others: chmod 600", file, info.Mode().Perm())
	}
	return nil
}

// version identifies the content of a file by the inode and the time of the last status change (ctime),
// which no program can set. So it detects a replaced file, and an edit that keeps size and
// modification time. The zero value is no file.
type version struct {
	inode   uint64
	bytes   int64
	changed syscall.Timespec
}

func versionOf(file string) version {
	info, err := os.Stat(file)
	if err != nil {
		return version{}
	}
	s := info.Sys().(*syscall.Stat_t) // always on Linux
	return version{inode: s.Ino, bytes: s.Size, changed: s.Ctim}
}
