package influxdb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// written writes a certificate, and its key beside it.
func written(t *testing.T, file string, der []byte, key *ecdsa.PrivateKey) {
	t.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{file: {Type: "CERTIFICATE", Bytes: der}, file + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func selfSigned(t *testing.T, until time.Time) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	one := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, one, one, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

// Certificates of a day are renewed by other programs: the store refuses the former one, and may have one of another authority.
func TestRenewedCertificatesAreUsed(t *testing.T) {
	valid, key := selfSigned(t, time.Now().Add(time.Hour))
	expired, expiredKey := selfSigned(t, time.Now().Add(-time.Minute))
	accepted, _ := x509.ParseCertificate(valid)
	former, _ := x509.ParseCertificate(expired)
	clients := x509.NewCertPool()
	clients.AddCert(accepted)
	clients.AddCert(former)
	store := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	store.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	store.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes that fail
	store.StartTLS()
	defer store.Close()
	to, err := url.Parse(store.URL)
	if err != nil {
		t.Fatal(err)
	}
	ca, own := t.TempDir()+"/ca.pem", t.TempDir()+"/own.pem"
	written(t, ca, expired, expiredKey) // not the authority of the store
	written(t, own, expired, expiredKey)
	o := Options{Version: 1, Timeout: await.Timeout, URL: store.URL, CAFile: ca, CertFile: own, KeyFile: own + ".key"}
	config, err := o.tls()
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(o, to, config)
	defer c.close()
	expect := func(when string, want string) {
		t.Helper()
		if r := c.write(t.Context(), []byte("m n=1 1"), nil); r.result != want {
			t.Errorf("%s: %s, %s; want %s", when, r.result, r.reason, want)
		}
	}
	expect("another authority", resultUnreachable)
	written(t, ca, store.Certificate().Raw, key)
	expect("an expired certificate", resultUnreachable)
	written(t, own, valid, key)
	expect("both renewed", resultWritten)
	if err := os.Remove(ca); err != nil {
		t.Fatal(err)
	}
	expect("without the file", resultWritten)
}
