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
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/atomicfile"
	"oneway.example/exporter/keyfile"
	"oneway.example/exporter/loadcontrol"
)

// identity is the load server's certificate: from files, which are read again when they
// change, or its own, of a key that is kept in the state directory.
type identity struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex
	seen     [2]version
	current  *tls.Certificate
	selfmade bool
}

// keyName is the file of the self-made key in the state directory.
const keyName = "load-server.key"

func newIdentity(o Options, now time.Time, log *slog.Logger) (*identity, error) {
	i := &identity{certFile: o.CertFile, keyFile: o.KeyFile, log: log}
	if o.CertFile != "" {
		return i, i.load()
	}
	key, err := ownKey(filepath.Join(o.StateDir, keyName))
	if err != nil {
		return nil, fmt.Errorf("loadserver: its own key: %w", err)
	}
	i.current, err = selfSigned(key, now)
	i.selfmade = true
	return i, err
}

// load reads the files, and keeps what was there before if it cannot.
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
	return [2]version{versionOf(i.certFile), versionOf(i.keyFile)} // what is missing differs from what was there
}

// certificate is tls.Config.GetCertificate.
func (i *identity) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.selfmade && i.versions() != i.seen {
		if err := i.load(); err != nil {
			i.log.Error("New certificate not taken over, the one before is used", "err", err)
		} else {
			i.log.Info("Certificate read again", "file", i.certFile)
		}
	}
	return i.current, nil
}

// pin is what a client may pin; it outlives the certificate.
func (i *identity) pin() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return loadcontrol.PinOf(i.current.Leaf)
}

// ownKey reads the key, or makes it (mode 0600).
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
		return nil, fmt.Errorf("%s: not a key in PEM; remove it to have a new one made", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	own, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: a key of another kind; remove it to have a new one made", file)
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

// selfSigned makes a certificate anew at each start: only its key is of meaning.
func selfSigned(key crypto.Signer, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "oneway load server"},
		NotBefore:    now.AddDate(-1, 0, 0), // clients' clocks may be wrong
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
	t := &tokens{file: file, log: log, seen: versionOf(file)}
	var err error
	if t.all, err = loadTokens(file); err != nil {
		return nil, fmt.Errorf("loadserver: tokens file: %w", err)
	}
	return t, nil
}

// current are the tokens in force. A file that cannot be read leaves no token in force: a
// token must be revocable whatever else is wrong. One that makes no sense, which may be
// somebody's half-written edit, leaves those before it in force.
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
		t.log.Error("Tokens file cannot be read, no token is accepted", "file", t.file, "err", err)
	case err != nil:
		if errors.As(err, new(*fs.PathError)) {
			t.seen.bytes = -1 // it may be readable in a moment
		}
		t.log.Error("Tokens file not taken over, the tokens before stay in force", "file", t.file, "err", err, "tokens", len(t.all))
	default:
		t.log.Info("Tokens read again", "file", t.file, "tokens", len(all))
		t.all = all
	}
	return t.all
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

func loadTokens(file string) ([]Token, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("%s: anybody may write to it (mode %#o); take that away: chmod 600", file, info.Mode().Perm())
	}
	content, err := readSome(f)
	var all []Token
	if err == nil {
		all, err = ParseTokens(content)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// readSome reads a file that must not be large.
func readSome(f io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(f, maxTokensFile+1))
	if err == nil && len(content) > maxTokensFile {
		err = fmt.Errorf("larger than %d bytes", maxTokensFile)
	}
	return content, err
}

// version tells one content of a file from another: a file from one that has taken its place,
// and an edit that keeps time and size from none, by the inode and the time of its last change,
// which nobody can set. The zero value is no file.
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
	s := info.Sys().(*syscall.Stat_t) // always, on Linux
	return version{inode: s.Ino, bytes: s.Size, changed: s.Ctim}
}
