package loadserver

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/clocks/none"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/remoteend"
)

// request sends an HTTP request over TLS and returns the response.
func (s *site) request(request string) *http.Response {
	s.t.Helper()
	c, err := tls.Dial("tcp", s.r.Addrs()[0].String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	fmt.Fprint(c, request)
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { reply.Body.Close() })
	return reply
}

const upgrade = "Host: h\r\nConnection: Upgrade\r\nUpgrade: " + loadcontrol.Protocol + "\r\n"

func TestUnknownPeersAreRefusedWithAReason(t *testing.T) {
	s := newSite(t, Options{}, "a")
	for name, c := range map[string]struct {
		request string
		status  int
		reason  loadcontrol.Reason
	}{
		"no token":      {"GET /v1/session HTTP/1.1\r\n" + upgrade + "\r\n", 401, loadcontrol.Unauthorized},
		"empty token":   {"GET /v1/session HTTP/1.1\r\n" + upgrade + "Authorization: Bearer \r\n\r\n", 401, loadcontrol.Unauthorized},
		"wrong token":   {"GET /v1/session HTTP/1.1\r\n" + upgrade + "Authorization: Bearer owt_x\r\n\r\n", 401, loadcontrol.Unauthorized},
		"another kind":  {"GET /v1/session HTTP/1.1\r\n" + upgrade + "Authorization: Basic " + s.tokens["a"] + "\r\n\r\n", 401, loadcontrol.Unauthorized},
		"token twice":   {"GET /v1/session HTTP/1.1\r\n" + upgrade + strings.Repeat("Authorization: Bearer "+s.tokens["a"]+"\r\n", 2) + "\r\n", 401, loadcontrol.Unauthorized},
		"the hash":      {"GET /v1/session HTTP/1.1\r\n" + upgrade + "Authorization: Bearer " + hashOf(t, s) + "\r\n\r\n", 401, loadcontrol.Unauthorized},
		"no upgrade":    {"GET /v1/session HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + s.tokens["a"] + "\r\n\r\n", 400, loadcontrol.BadRequest},
		"wrong version": {"GET /v1/session HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: oneway-test/9\r\nAuthorization: Bearer " + s.tokens["a"] + "\r\n\r\n", 426, loadcontrol.WrongVersion},
		"old version":   {"GET /v1/session HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: oneway-test/1\r\nAuthorization: Bearer " + s.tokens["a"] + "\r\n\r\n", 426, loadcontrol.WrongVersion},
		"elsewhere":     {"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n", 404, ""},
		"large headers": {"GET /v1/session HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 431, ""},
	} {
		reply := s.request(c.request) //nolint:bodyclose // request closes it when the test ends
		if reply.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", name, reply.StatusCode, c.status)
		}
		if c.reason == "" {
			continue
		}
		var got loadcontrol.Refusal
		if err := json.NewDecoder(reply.Body).Decode(&got); err != nil || got.Reason != c.reason || got.Detail == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if n := s.r.Status(); n.Refused[loadcontrol.Unauthorized] != 6 || n.Opened != 0 {
		t.Errorf("%+v", n)
	}
}

// hashOf returns the hash in the tokens file.
func hashOf(t *testing.T, s *site) string {
	t.Helper()
	content, err := os.ReadFile(s.o.TokensFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(strings.Fields(string(content))[1], "sha256:")
}

func TestSlowUnknownPeersAreCutOff(t *testing.T) {
	s := newSite(t, Options{headers: 300 * time.Millisecond}, "a")
	raw := func() net.Conn {
		c, err := net.Dial("tcp", s.r.Addrs()[0].String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	secured := func() net.Conn {
		c := tls.Client(raw(), &tls.Config{InsecureSkipVerify: true})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, c := range map[string]struct {
		open    func() net.Conn
		trickle string
	}{
		"sends nothing":                {raw, ""},
		"sends a TLS handshake slowly": {raw, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		"sends other bytes slowly":     {raw, "\x16\x03\x03\xff\xff"},
		"sends nothing after TLS":      {secured, ""},
		"sends a request slowly":       {secured, "GET /v1/session HTTP/1.1\r\nHost: h\r\nX: aaaaaaaaaaaaaaaaaaaaaa"},
		"sends a body slowly":          {secured, "GET /v1/session HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n"},
		"sends HTTP without TLS":       {raw, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
		"sends an HTTP/2 preface":      {secured, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
	} {
		begin := time.Now()
		conn := c.open()
		ended := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, conn) // until it is closed
			close(ended)
		}()
		for i := 0; ; i++ {
			select {
			case <-ended:
			case <-time.After(40 * time.Millisecond):
				if i < len(c.trickle) {
					_, _ = conn.Write([]byte(c.trickle[i : i+1])) // it may be closed by now
				}
				if time.Since(begin) < 5*second {
					continue
				}
				t.Errorf("a peer that %s is still connected after 5 s", name)
			}
			break
		}
	}
	remoteend.Eventually(t, "no connection is left", func() bool { return s.r.Status().Connections == 0 })
}

func TestUnknownPeersHaveFiveSecondsAndFewOf256Connections(t *testing.T) {
	o := Options{TokensFile: "t", StateDir: "d"}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	g := newGate(&o, func(loadcontrol.Reason) {})
	if o.headers != 5*second || o.MaxConnections != 256 || g.perHost() != 64 || g.perSite() != 128 {
		t.Errorf("%v for a request, %d connections, %d from one address and %d from one /48; want 5 s, 256, a quarter and half of them", o.headers, o.MaxConnections, g.perHost(), g.perSite())
	}
}

func TestOnlyAllowedSourcesAreLetIn(t *testing.T) {
	s := newSite(t, Options{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, "a")
	if _, err := s.dial("a"); err == nil {
		t.Error("a source that is not allowed was served")
	}
	if n := s.r.Status().Refused[loadcontrol.Unauthorized]; n != 1 {
		t.Errorf("%d refused", n)
	}
}

func TestClientCertificateStandsForAToken(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, Options{ClientCAFile: authority(t, dir, "berlin", "unknown")}, "a")
	if err := AppendToken(s.o.TokensFile, Token{Name: "berlin", Certificate: true, Limits: loadcontrol.Limits{Sessions: 7}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"berlin":   "",
		"unknown":  `the certificate of "unknown" has no token: the tokens file needs the line`,
		"impostor": "requires a client certificate of its own authority",
	} {
		c, err := s.present(dir, name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if err == nil {
			if got := c.Welcome().Limits.Sessions; got != 7 {
				t.Errorf("%s may have %d sessions, want 7, as in the file", name, got)
			}
			c.Close()
		}
	}
}

// An authority whose key is lost is replaced in the file.
func TestFormerAuthorityIsNotAccepted(t *testing.T) {
	former, own := t.TempDir(), t.TempDir()
	file := authority(t, former, "berlin")
	s := newSite(t, Options{ClientCAFile: file}, "a")
	if err := AppendToken(s.o.TokensFile, Token{Name: "berlin", Certificate: true}); err != nil {
		t.Fatal(err)
	}
	replace := func(dir string) {
		pem, err := os.ReadFile(authority(t, dir, "berlin"))
		if err == nil {
			err = os.WriteFile(file, pem, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when, dir, want string) {
		t.Helper()
		c, err := s.present(dir, "berlin")
		if err == nil {
			c.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
	}
	expect("at first", former, "")
	replace(own)
	expect("the former one", former, "requires a client certificate of its own authority")
	expect("the new one", own, "")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect("while the file is written", own, "")
}

// A new file that cannot be read for a time, as without a file descriptor, is read afterwards.
func TestFilesAreReadAgainAfterAFailedRead(t *testing.T) {
	dir := t.TempDir()
	file := authority(t, dir, "berlin")
	a, err := newAuthorities(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	first := a.current()
	pem, err := os.ReadFile(authority(t, t.TempDir(), "berlin"))
	if err == nil {
		err = os.WriteFile(file, pem, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	without := a.current()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !without.Equal(first) {
		t.Error("without a file descriptor the former authorities are not in use")
	}
	if a.current().Equal(first) {
		t.Error("the new authorities are not read once there are file descriptors")
	}
}

func TestLoadServerWithoutAuthoritiesSaysThatItTakesNoClientCertificate(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, Options{}, "a")
	authority(t, dir, "berlin")
	if _, err := s.present(dir, "berlin"); err == nil || !strings.Contains(err.Error(), "without client_ca_file this load server accepts no client certificate") {
		t.Errorf("%v", err)
	}
}

// present dials with the certificate of a name.
func (s *site) present(dir, name string) (*loadcontrol.Client, error) {
	return loadcontrol.Dial(s.t.Context(), loadcontrol.ClientOptions{
		Address: s.r.Addrs()[0].String(), Pin: s.r.Pin(), CertFile: filepath.Join(dir, name+".pem"), KeyFile: filepath.Join(dir, name+".key"),
	})
}

// authority makes certificates for names, and a self-signed one for "impostor" with the name of
// the first.
func authority(t *testing.T, dir string, names ...string) (caFile string) {
	t.Helper()
	now := time.Now()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	write := func(file, kind string, der []byte) string {
		file = filepath.Join(dir, file)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	leaf := func(name, common string, signer *ecdsa.PrivateKey) {
		own, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: common}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, ca, own.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		pkcs8, _ := x509.MarshalPKCS8PrivateKey(own)
		write(name+".pem", "CERTIFICATE", der)
		write(name+".key", "PRIVATE KEY", pkcs8)
	}
	for _, name := range names {
		leaf(name, name, key)
	}
	nobody, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	leaf("impostor", names[0], nobody)
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return write("ca.pem", "CERTIFICATE", der)
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	good := Options{TokensFile: "t", StateDir: "d"}
	links := link.NewTable(nil)
	for want, change := range map[string]func(*Options){
		"tokens_file is missing":                  func(o *Options) { o.TokensFile = "" },
		"key_file is missing; cert_file needs it": func(o *Options) { o.CertFile = "c" },
		"needs a directory for its generated key": func(o *Options) { o.StateDir = "" },
		"max_connections is -1":                   func(o *Options) { o.MaxConnections = -1 },
		"max_sessions is 300":                     func(o *Options) { o.MaxSessions = 300 },
		"listen: not an address with a port":      func(o *Options) { o.Listen = make([]netip.AddrPort, 1) },
		"ports is 9-8; it must be a range":        func(o *Options) { o.Ports = option.Ports{First: 9, Last: 8} },
		"ports is 0-8; it must be a range":        func(o *Options) { o.Ports = option.Ports{First: 0, Last: 8} },
		"allow: not an address with a":            func(o *Options) { o.Allow = make([]netip.Prefix, 1) },
		"tokens_file cannot be used: open ":       func(*Options) {},
	} {
		o := good
		change(&o)
		if _, err := New(o, Env{Sink: metric.Discard{}, Clock: none.New(metric.Discard{}), Links: links, Traffic: traffictypes.All()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	whole := Env{Sink: metric.Discard{}, Clock: none.New(metric.Discard{}), Links: links, Traffic: traffictypes.All()}
	for what, change := range map[string]func(*Env){
		"sink": func(e *Env) { e.Sink = nil }, "clock": func(e *Env) { e.Clock = nil },
		"links": func(e *Env) { e.Links = nil }, "type of traffic": func(e *Env) { e.Traffic = nil },
	} {
		env := whole
		change(&env)
		if _, err := New(good, env); err == nil || !strings.Contains(err.Error(), "a type of traffic are required") {
			t.Errorf("no %s: %v", what, err)
		}
	}
}
