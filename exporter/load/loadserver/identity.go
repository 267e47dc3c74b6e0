package loadserver

import (
	"context"
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
	log *slog.Logger

	mu      sync.Mutex
	cert    watched
	key     watched
	current *tls.Certificate
	// generated is the file of the generated key; empty: there is none.
	generated string
	// directory is the directory of that file, open so that no other one gets its inode; nil: it could not be opened.
	directory *os.File
	failing   bool // the log has that the key cannot be saved
}

// keyName is the file of the generated key in the state directory.
const keyName = "load-server.key"

func newIdentity(o Options, now time.Time, log *slog.Logger) (*identity, error) {
	i := &identity{cert: watch(o.CertFile), key: watch(o.KeyFile), log: log}
	if o.CertFile != "" {
		return i, i.load()
	}
	i.generated = filepath.Join(o.StateDir, keyName)
	key, err := ownKey(i.generated)
	if err != nil {
		return nil, fmt.Errorf("loadserver: generated key: %w", err)
	}
	i.directory, _ = os.Open(o.StateDir) // nil: keep opens it
	i.current, err = selfSigned(key, now)
	return i, err
}

// keep saves the generated key again if its directory was removed or replaced: clients refuse a load server with another key. A key that
// is removed alone is to be generated anew at the next start.
func (i *identity) keep() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.generated == "" {
		return
	}
	if own, err := i.directory.Stat(); err == nil {
		if now, err := os.Stat(filepath.Dir(i.generated)); err == nil && os.SameFile(own, now) {
			return
		}
	}
	_, err := os.Lstat(i.generated)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing {
		err = saveKey(i.generated, i.current.PrivateKey)
	}
	switch {
	case err != nil && !i.failing:
		i.log.Error("The key cannot be saved in state_dir, which was removed or replaced; after a restart clients with the present pin refuse this load server", "err", err)
	case err == nil && missing:
		i.log.Warn("state_dir was removed or replaced while this load server ran; it has the key again", "file", i.generated)
	}
	if i.failing = err != nil; !i.failing {
		_ = i.directory.Close() // it was only compared
		i.directory, _ = os.Open(filepath.Dir(i.generated))
	}
}

// load reads the files; on an error the previous certificate stays.
func (i *identity) load() error {
	pair, err := keyfile.KeyPair(i.cert.file, i.key.file)
	if err != nil {
		if !i.cert.missing() && !i.key.missing() {
			i.cert.unread(err)
		}
		return fmt.Errorf("loadserver: certificate: %w", err)
	}
	i.current = &pair
	return nil
}

// certificate implements tls.Config.GetCertificate.
func (i *identity) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if cert, key := i.cert.changed(), i.key.changed(); i.generated == "" && (cert || key) {
		if err := i.load(); err != nil {
			i.log.Error("New certificate not loaded; the previous one stays in use", "err", err)
		} else {
			i.log.Info("Certificate reloaded", "file", i.cert.file)
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
	return key, saveKey(file, key)
}

// saveKey writes a key to a file (mode 0600), whose directory is made if it does not exist.
func saveKey(file string, key crypto.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	atomicfile.RemoveUnfinished(file)
	return atomicfile.Replace(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
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
	log *slog.Logger

	mu sync.Mutex
	watched
	all []Token
}

// newTokens reads the file for the first time; an invalid file is an error.
func newTokens(file string, log *slog.Logger) (*tokens, error) {
	t := &tokens{log: log, watched: watch(file)}
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
	if !t.changed() {
		return t.all
	}
	switch all, err := loadTokens(t.file); {
	case t.missing():
		t.all = nil
		t.log.Error("Tokens file is missing; no token is accepted", "file", t.file, "err", err)
	case err != nil:
		t.unread(err)
		t.log.Error("Tokens file not loaded; the previous tokens stay valid", "file", t.file, "err", err, "tokens", len(t.all))
	case len(all) == 0:
		t.all = all
		t.log.Warn("Tokens file has no token; no token is accepted", "file", t.file)
	default:
		level := slog.LevelInfo
		if len(t.all) == 0 {
			level = slog.LevelWarn // as the message before it
		}
		t.log.Log(context.Background(), level, "Tokens reloaded", "file", t.file, "tokens", len(all))
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

// watched is a file that is read again when it changes.
type watched struct {
	file string
	seen version
}

func watch(file string) watched { return watched{file, versionOf(file)} }

// changed reports whether the file must be read: it is another one than at the last call.
func (w *watched) changed() bool {
	v := versionOf(w.file)
	if v == w.seen {
		return false
	}
	w.seen = v
	return true
}

// missing reports whether there was no file at the last call of changed.
func (w *watched) missing() bool { return w.seen == version{} }

// unread is told the error of reading the file: one that was there and could not be read, such as without a file descriptor, is read at
// the next call again.
func (w *watched) unread(err error) {
	if !w.missing() && errors.As(err, new(*fs.PathError)) {
		w.seen.bytes = -1
	}
}
