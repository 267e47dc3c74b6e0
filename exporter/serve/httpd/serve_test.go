package httpd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
)

// serve serves the sample on n addresses until the end of the test.
func serve(t *testing.T, n int, webConfig string) (addresses []string) {
	t.Helper()
	flags := &web.FlagConfig{WebListenAddresses: new([]string), WebSystemdSocket: new(bool), WebConfigFile: &webConfig}
	for range n {
		*flags.WebListenAddresses = append(*flags.WebListenAddresses, "127.0.0.1:0")
	}
	listeners, err := Listen(flags, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range listeners {
		addresses = append(addresses, l.Addr().String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	h := Handler(Options{Source: &fakeSource{status: sample()}, Registry: NewRegistry()})
	go func() { served <- Serve(ctx, listeners, h, flags, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("Serve returned %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Serve did not return")
		}
	})
	return addresses
}

func fetch(t *testing.T, c *http.Client, url, user, password string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func client(pool *x509.CertPool) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

func TestSeveralAddressesAreServed(t *testing.T) {
	for _, address := range serve(t, 2, "") {
		if got := fetch(t, client(nil), "http://"+address+"/-/ready", "", ""); got != http.StatusOK {
			t.Errorf("%s: status %d", address, got)
		}
	}
}

// webConfig writes a configuration with a certificate for 127.0.0.1 and the user "prometheus" with the password "test".
func webConfig(t *testing.T) (file string, pool *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	file = filepath.Join(dir, "web.yml")
	for name, content := range map[string]string{
		"cert.pem": string(cert),
		"key.pem":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
		"web.yml": "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nbasic_auth_users:\n" +
			"  prometheus: $2a$04$gpROYw1fb7ZeO8tDJ81JbOPK5A/6yW3.WZbntxKriuCxYyFHGdgIa\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file, pool
}

func TestTLSAndPasswordsAreThoseOfTheWebConfiguration(t *testing.T) {
	file, pool := webConfig(t)
	if err := CheckConfig(file); err != nil {
		t.Fatal(err)
	}
	for _, address := range serve(t, 2, file) {
		url := "https://" + address + "/metrics"
		if got := fetch(t, client(pool), url, "prometheus", "test"); got != http.StatusOK {
			t.Errorf("with the password: status %d", got)
		}
		if got := fetch(t, client(pool), url, "prometheus", "wrong"); got != http.StatusUnauthorized {
			t.Errorf("with a wrong password: status %d", got)
		}
		if got := fetch(t, client(nil), "http://"+address+"/metrics", "", ""); got != http.StatusBadRequest {
			t.Errorf("without TLS: status %d", got)
		}
	}
}

func TestWrongWebConfigurationIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(file, []byte("tls_server_config: {cert_file: absent.pem}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckConfig(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error is %v", err)
	}
	if err := CheckConfig(""); err != nil {
		t.Errorf("no file is valid: %v", err)
	}
}

func TestAddressInUseIsAnErrorWithAdvice(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Listen(&web.FlagConfig{WebListenAddresses: &[]string{"127.0.0.1:0", l.Addr().String()}}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) || !strings.Contains(err.Error(), "--web.listen-address") {
		t.Errorf("error is %v", err)
	}
}

// The agent serves on the addresses that this host has, and on the others when it gets them.
func TestAddressThatThisHostDoesNotHaveEndsNothing(t *testing.T) {
	var said, served strings.Builder
	flags := &web.FlagConfig{WebListenAddresses: &[]string{"203.0.113.1:9862", "[fe80::1%nosuch]:9862", "127.0.0.1:0"}, WebSystemdSocket: new(bool), WebConfigFile: new(string)}
	listeners, err := Listen(flags, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil || len(listeners) != 3 {
		t.Fatalf("%d listeners, %v", len(listeners), err)
	}
	if at := listeners[1].Addr().String(); at != "203.0.113.1:9862" || !strings.Contains(said.String(), "203.0.113.1:9862") || !strings.Contains(said.String(), "tried again") {
		t.Errorf("waits for %s; the log: %s", at, said.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, listeners, http.NotFoundHandler(), flags, slog.New(slog.NewTextHandler(&served, nil)))
	}()
	r, err := http.Get("http://" + listeners[0].Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if log := served.String(); strings.Count(log, "Listening on") != 1 || strings.Contains(log, ":9862") {
		t.Errorf("it listens on one address; the log:\n%s", log)
	}
	for _, address := range (*flags.WebListenAddresses)[:2] {
		if _, err := Listen(&web.FlagConfig{WebListenAddresses: &[]string{address}}, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s is open", address)
		}
	}
}

// TestSocketOfSystemdThatIsNoStreamIsNamed: a unit with ListenDatagram= gives nil for it.
func TestSocketOfSystemdThatIsNoStreamIsNamed(t *testing.T) {
	for want, listeners := range map[string][]net.Listener{
		"no socket": nil, "ListenStream=": {new(net.TCPListener), nil}, "": {new(net.TCPListener)},
	} {
		got, err := activated(listeners, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && len(got) != 1 {
			t.Errorf("%d listeners: %v, want %q", len(listeners), err, want)
		}
	}
}

// TestSlowHeadersAreCutOff checks the server's limits instead of waiting for them.
func TestSlowHeadersAreCutOff(t *testing.T) {
	s := newServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler), &space{})
	for _, c := range []struct {
		name    string
		d, most time.Duration
	}{
		{"header", s.ReadHeaderTimeout, 10 * time.Second},
		{"read", s.ReadTimeout, 30 * time.Second},
		{"write", s.WriteTimeout, 2 * time.Minute},
		{"idle", s.IdleTimeout, 30 * time.Second},
	} {
		if c.d <= 0 || c.d > c.most {
			t.Errorf("%s timeout is %v, want at most %v", c.name, c.d, c.most)
		}
	}
	if n := s.HTTP2.MaxConcurrentStreams; n <= 0 || n > 4 {
		t.Errorf("%d concurrent requests of an HTTP/2 connection, want at most 4", n)
	}
}

func TestHugeHeadersAreRefused(t *testing.T) {
	address := serve(t, 1, "")[0]
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: h\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", 2*maxHeaderBytes))
	reply := make([]byte, 12)
	if _, err := io.ReadFull(c, reply); err != nil || string(reply) != "HTTP/1.1 431" {
		t.Errorf("reply is %q, %v; want 431", reply, err)
	}
}

func TestExternalHostsAreNames(t *testing.T) {
	if err := CheckHosts([]string{"probe", "probe.example.net."}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "http://probe.example.net", "probe.example.net:9862", "*.example.net", "probe/"} {
		if err := CheckHosts([]string{"probe", bad}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestSchemeIsHTTPSWithTLS(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "http",
		"basic_auth_users: {a: b}\n": "http",
		"tls_server_config: {cert_file: c.pem, key_file: k.pem}\n":         "https",
		"tls_server_config: {cert: '-----BEGIN', key: '-----BEGIN KEY'}\n": "https",
	} {
		file := filepath.Join(t.TempDir(), "web.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Scheme(file); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := Scheme(""); got != "http" {
		t.Errorf("without a file: %s", got)
	}
}
