package loadcontrol

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// identity is a key with a self-signed certificate.
type identity struct {
	cert     tls.Certificate
	certFile string // both in PEM
	keyFile  string
}

// newIdentity makes an identity for these names and addresses.
func newIdentity(t *testing.T, until time.Time, hosts ...string) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	id := identity{
		cert:     tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf},
		certFile: filepath.Join(t.TempDir(), "cert.pem"), keyFile: filepath.Join(t.TempDir(), "key.pem"),
	}
	for file, block := range map[string]*pem.Block{id.certFile: {Type: "CERTIFICATE", Bytes: der}, id.keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

// valid returns an identity for the loopback address.
func valid(t *testing.T) identity {
	t.Helper()
	return newIdentity(t, time.Now().Add(time.Hour), "127.0.0.1", "server.example")
}

// showing returns a GetCertificate function for one certificate.
func showing(cert tls.Certificate) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
}

// serve serves HTTP over TLS on the loopback address.
func serve(t *testing.T, config *tls.Config, handler http.HandlerFunc) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ErrorLog: discard(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(tls.NewListener(l, config))
	}()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return l.Addr().String()
}

// play runs a load server on the loopback address that follows a script after its Welcome and then
// closes the connection.
func play(t *testing.T, script func(*Conn)) ClientOptions {
	t.Helper()
	id := valid(t)
	address := serve(t, ServerTLS(showing(id.cert), nil), func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if err := c.Write(Message{Welcome: &Welcome{Limits: Limits{Sessions: 3}}}); err != nil {
			t.Error(err)
			return
		}
		script(c)
	})
	return ClientOptions{Address: address, CAFile: id.certFile}
}

// converse returns a session with a load server that follows a script, over TLS and HTTP on a
// simulated network, for synctest.
func converse(t *testing.T, script func(*Conn)) *Client {
	t.Helper()
	id, l := valid(t), newLink(t)
	listener := &oneListener{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	listener.conn <- l.ends[1]
	var tasks sync.WaitGroup
	server := &http.Server{ErrorLog: discard(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tasks.Add(1)
		defer tasks.Done()
		c, err := Accept(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		send(c, Message{Welcome: &Welcome{Limits: Limits{Sessions: 3}}})
		script(c)
	})}
	tasks.Go(func() { _ = server.Serve(tls.NewListener(listener, ServerTLS(showing(id.cert), nil))) })
	o := ClientOptions{CAFile: id.certFile}
	trust, err := clientTLS(&o, "server.example")
	if err != nil {
		t.Fatal(err)
	}
	client, err := handshake(t.Context(), l.ends[0], trust, &o, "server.example:8620")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
		tasks.Wait()
	})
	return client
}

// oneListener accepts one connection.
type oneListener struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *oneListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *oneListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// reply accepts TCP connections on the loopback address and passes each to a function.
func reply(t *testing.T, with func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			with(c)
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}
