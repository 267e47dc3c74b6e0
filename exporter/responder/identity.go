package responder

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
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/keyfile"
	"oneway.example/exporter/wholefile"
)

// identity is the responder's certificate: from files, which are read again when they
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
const keyName = "responder.key"

func newIdentity(o Options, now time.Time, log *slog.Logger) (*identity, error) {
	i := &identity{certFile: o.CertFile, keyFile: o.KeyFile, log: log}
	if o.CertFile != "" {
		return i, i.load()
	}
	key, err := ownKey(filepath.Join(o.StateDir, keyName))
	if err != nil {
		return nil, fmt.Errorf("responder: its own key: %w", err)
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
		return fmt.Errorf("responder: certificate: %w", err)
	}
	i.current = &pair
	return nil
}

func (i *identity) versions() (v [2]version) {
	for n, file := range []string{i.certFile, i.keyFile} {
		v[n], _ = versionOf(file) // what is missing differs from what was there
	}
	return v
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
	if len(i.current.Certificate) == 0 {
		return ""
	}
	c, err := x509.ParseCertificate(i.current.Certificate[0])
	if err != nil {
		return ""
	}
	return control.PinOf(c)
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
	wholefile.RemoveUnfinished(file)
	return key, wholefile.Replace(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// selfSigned makes a certificate anew at each start: only its key is of meaning.
func selfSigned(key crypto.Signer, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "oneway responder"},
		NotBefore:    now.AddDate(-1, 0, 0), // clients' clocks may be wrong
		NotAfter:     now.AddDate(20, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("responder: certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
