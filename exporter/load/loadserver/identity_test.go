package loadserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noLog = slog.New(slog.DiscardHandler)

func TestGeneratedKeyAndPinSurviveARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	first, err := newIdentity(Options{StateDir: dir}, time.Now(), noLog)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newIdentity(Options{StateDir: dir}, time.Now().AddDate(1, 0, 0), noLog)
	if err != nil {
		t.Fatal(err)
	}
	if first.pin() != second.pin() || len(first.pin()) != len("sha256:")+64 {
		t.Errorf("pins %s and %s", first.pin(), second.pin())
	}
	other, err := newIdentity(Options{StateDir: t.TempDir()}, time.Now(), noLog)
	if err != nil || other.pin() == first.pin() {
		t.Errorf("two load servers have the same key, %v", err)
	}
	file := filepath.Join(dir, keyName)
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newIdentity(Options{StateDir: dir}, time.Now(), noLog); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a damaged key: %v", err)
	}
}

func TestCertificateIsReloadedWhenItChanges(t *testing.T) {
	o := Options{CertFile: filepath.Join(t.TempDir(), "cert"), KeyFile: filepath.Join(t.TempDir(), "key")}
	if _, err := newIdentity(o, time.Now(), noLog); err == nil {
		t.Error("no error without the files")
	}
	writePair(t, o)
	i, err := newIdentity(o, time.Now(), noLog)
	if err != nil {
		t.Fatal(err)
	}
	before := i.pin()
	if err := os.WriteFile(o.CertFile, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := i.certificate(nil); err != nil || c == nil || i.pin() != before {
		t.Errorf("after a damaged file: %v", err)
	}
	writePair(t, o)
	if _, err := i.certificate(nil); err != nil || i.pin() == before {
		t.Errorf("the new certificate is not used: %v", err)
	}
}

// writePair makes a new key and its certificate.
func writePair(t *testing.T, o Options) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := selfSigned(key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		o.CertFile: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, o.KeyFile: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeyIsSavedAgainWithItsDirectory: one that was removed alone is not.
func TestKeyIsSavedAgainWithItsDirectory(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(dir string) error
		same   bool
	}{
		"directory removed":         {os.RemoveAll, true},
		"directory replaced":        {func(dir string) error { return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o750)) }, true},
		"a file in its place first": {func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) }, true},
		"key removed":               {func(dir string) error { return os.Remove(filepath.Join(dir, keyName)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			i, err := newIdentity(Options{StateDir: dir}, time.Now(), noLog)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.damage(dir); err != nil {
				t.Fatal(err)
			}
			i.keep()
			if info, err := os.Stat(dir); err == nil && !info.IsDir() {
				if err := os.Remove(dir); err != nil {
					t.Fatal(err)
				}
				i.keep()
			}
			next, err := newIdentity(Options{StateDir: dir}, time.Now(), noLog)
			if err != nil {
				t.Fatal(err)
			}
			if same := next.pin() == i.pin(); same != c.same {
				t.Errorf("the next start has the same key: %v, want %v", same, c.same)
			}
		})
	}
}
