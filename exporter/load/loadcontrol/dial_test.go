package loadcontrol

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func discard() *log.Logger { return log.New(io.Discard, "", 0) }

const secret = "s3cret-token"

func TestTokenArrivesInTheHeaderAndIsShownNowhere(t *testing.T) {
	got := make(chan string, 1)
	id := valid(t)
	address := serve(t, ServerTLS(showing(id.cert), nil), func(w http.ResponseWriter, r *http.Request) {
		token, ok := BearerToken(r)
		got <- fmt.Sprint(token, ok, r.URL.Path, strings.Contains(r.URL.String()+r.UserAgent(), secret))
		Refuse(w, &Refusal{Reason: Unauthorized, Detail: "no such token"})
	})
	o := ClientOptions{Address: address, Token: secret, CAFile: id.certFile}
	_, err := Dial(t.Context(), o)
	if want := secret + "true/v1/sessionfalse"; <-got != want {
		t.Error("the token must arrive in the Authorization header only")
	}
	var text strings.Builder
	slog.New(slog.NewTextHandler(&text, nil)).Info("dialing", "options", o)
	fmt.Fprintf(&text, "%v %+v %#v %s %v", o, o, o, o, err)
	o.Token = "two words " + secret
	_, err = Dial(t.Context(), o)
	fmt.Fprint(&text, err)
	if strings.Contains(text.String(), secret) {
		t.Errorf("the token is shown: %s", text.String())
	}
	if err == nil || !strings.Contains(err.Error(), "byte 3 of the token is a space or not printable ASCII") {
		t.Error(err)
	}
}

func TestRefusalBeforeTheUpgradeReachesTheClient(t *testing.T) {
	id := valid(t)
	for _, reason := range Reasons() {
		want := Refusal{Reason: reason, Detail: "because of " + Protocol, RetryAfter: 90 * time.Second}
		address := serve(t, ServerTLS(showing(id.cert), nil), func(w http.ResponseWriter, _ *http.Request) { Refuse(w, &want) })
		_, err := Dial(t.Context(), ClientOptions{Address: address, CAFile: id.certFile})
		var got *Refusal
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		if !strings.Contains(err.Error(), address) {
			t.Errorf("%s: the error does not name the address: %v", reason, err)
		}
	}
}

// TestDialErrorsNameTheCause dials peers that are no load servers or not the expected one.
func TestDialErrorsNameTheCause(t *testing.T) {
	id, other := valid(t), valid(t)
	expired := newIdentity(t, time.Now().Add(-time.Hour), "127.0.0.1")
	elsewhere := newIdentity(t, time.Now().Add(time.Hour), "192.0.2.1")
	with := func(id identity, h http.HandlerFunc) string { return serve(t, ServerTLS(showing(id.cert), nil), h) }
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	// A peer that sends these bytes as its HTTP response.
	bytes := func(reply string) string {
		return with(id, func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(c, reply)
			c.Close()
		})
	}
	const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: oneway-test/4\r\n\r\n"
	message := func(s string) string { return string(frame([]byte(s), 0)) }
	old := ServerTLS(showing(id.cert), nil)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	clients := x509.NewCertPool()
	clients.AddCert(id.cert.Leaf)
	clients.AddCert(expired.cert.Leaf)
	strict := ServerTLS(showing(id.cert), clients)
	strict.ClientAuth = tls.RequireAndVerifyClientCert
	free := reply(t, func(net.Conn) {})
	for _, c := range []struct {
		name string
		o    ClientOptions
		want string
	}{
		{"an API server", ClientOptions{Address: with(id, text(403, `{"kind":"Status","reason":"Forbidden","code":403}`))}, "HTTP: the response is 403 Forbidden, neither an upgrade nor a refusal: it is from a proxy or another web server; dial the load server itself"},
		{"a web server", ClientOptions{Address: with(id, text(200, "<html>"))}, "HTTP: the response is 200 OK, neither an upgrade nor a refusal: it is from a proxy or another web server; dial the load server itself"},
		{"a proxy that fails", ClientOptions{Address: with(id, text(503, "upstream"))}, "HTTP: the response is 503 Service Unavailable, neither"},
		{"a refusal for no known reason", ClientOptions{Address: with(id, text(418, `{"reason":"tea"}`))}, "the response is 418 I'm a teapot, neither"},
		{"JSON of another program", ClientOptions{Address: with(id, text(401, `{"reason":5}`))}, "the response is 401 "},
		{"another protocol", ClientOptions{Address: bytes("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")}, `the response upgrades to the protocol "websocket", want "oneway-test/4"`},
		{"headers without end", ClientOptions{Address: bytes("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<20))}, "HTTP: more than 32768 bytes of headers"},
		{"a reply that is cut", ClientOptions{Address: bytes("HTTP/1.1 101 Swi")}, "unexpected EOF: the peer closed the connection without a reply: is it a load server?"},
		{"no reply at all", ClientOptions{Address: bytes("")}, "the peer closed the connection without a reply: is it a load server?"},
		{"the end before TLS", ClientOptions{Address: reply(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) })}, "is it a load server, and does the path carry packets of 1200 bytes, both ways?"},
		{"no HTTP", ClientOptions{Address: bytes("220 mail ESMTP\r\n")}, "HTTP: malformed HTTP"},
		{"random bytes after the upgrade", ClientOptions{Address: bytes(switched + "\x99\x98random")}, "protocol violated: message of 2576904801 bytes"},
		{"wrong order", ClientOptions{Address: bytes(switched + message(`{"opened":{}}`))}, "opened before welcome"},
		{"an older version", ClientOptions{Address: with(id, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close, Upgrade")
			w.Header().Set("Upgrade", "oneway-test/1")
			w.WriteHeader(http.StatusUpgradeRequired)
			io.WriteString(w, `{"reason":"wrong_version","detail":"this load server speaks oneway-test/1"}`)
		})}, "refused: wrong_version: this load server speaks oneway-test/1, and this client oneway-test/4: run the same version of oneway at both ends"},
		{"an older version that upgrades all the same", ClientOptions{Address: bytes("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: oneway-test/1\r\n\r\n")}, `the response upgrades to the protocol "oneway-test/1", want "oneway-test/4"`},
		{"a refusal in place of a welcome", ClientOptions{Address: bytes(switched + message(`{"refusal":{"reason":"shutting_down","detail":"a\nb"}}`))}, "refused: shutting_down: a?b"},
		{"the end after the upgrade", ClientOptions{Address: bytes(switched)}, "connection lost"},
		{"no TLS", ClientOptions{Address: reply(t, func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH\r\n") })}, "the reply is not TLS: is it the load server's port?"},
		{"TLS 1.2", ClientOptions{Address: serve(t, old, text(200, ""))}, "the peer does not support TLS 1.3: is it a load server?"},
		{"nobody's certificate", ClientOptions{Address: with(other, text(200, ""))}, "set ca_file to the authority that signed it, or pin to its key: it presented " + PinOf(other.cert.Leaf)},
		{"a certificate for others", ClientOptions{Address: with(elsewhere, text(200, "")), CAFile: elsewhere.certFile}, "use a name in its certificate, or pin its key"},
		{"an expired certificate", ClientOptions{Address: with(expired, text(200, "")), CAFile: expired.certFile}, "renew its certificate, set this host's clock, or pin its key"},
		{"another key", ClientOptions{Address: with(id, text(200, "")), Pin: PinOf(other.cert.Leaf)}, "the key is " + PinOf(id.cert.Leaf) + ", which is not the pinned one: if the load server has a new key"},
		{"a pin and an authority that disagree", ClientOptions{Address: with(other, text(200, "")), Pin: PinOf(other.cert.Leaf), CAFile: id.certFile}, "set ca_file"},
		{"no client certificate", ClientOptions{Address: serve(t, strict, text(200, ""))}, "the load server requires a client certificate of its own authority: see cert_file and key_file"},
		{"a client certificate of nobody", ClientOptions{Address: serve(t, strict, text(200, "")), CertFile: other.certFile, KeyFile: other.keyFile}, "the load server requires a client certificate of its own authority"},
		{"an expired client certificate", ClientOptions{Address: serve(t, strict, text(200, "")), CertFile: expired.certFile, KeyFile: expired.keyFile}, "the client certificate (cert_file) has expired"},
		{"nobody listening", ClientOptions{Address: closed(t)}, "connection refused: is a load server listening on this port?"},
		{"the wrong family", ClientOptions{Address: free, Family: "ipv6"}, "it has no address of family ipv6"},
		{"a local address of another family", ClientOptions{Address: free, Local: netip.IPv6Loopback()}, "it has no address of family ipv6, the family of the local address ::1"},
	} {
		if c.o.CAFile == "" && c.o.Pin == "" {
			c.o.CAFile = id.certFile
		}
		client, err := Dial(t.Context(), c.o)
		if err == nil {
			client.Close()
			t.Errorf("%s: no error", c.name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "load server "+c.o.Address) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
}

// closed returns an address without a listener.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// The peer sends nothing more after each step.
func TestDialTimesOutAtEachStep(t *testing.T) {
	id := valid(t)
	stop := make(chan struct{})
	defer close(stop)
	mute := reply(t, func(net.Conn) { <-stop })
	silent := serve(t, ServerTLS(showing(id.cert), nil), func(http.ResponseWriter, *http.Request) { <-stop })
	o := play(t, func(c *Conn) { <-c.Done() })
	accepts := "the port accepts connections and sends nothing: another program listens there, a load server that hangs, "
	for name, c := range map[string]struct {
		o    ClientOptions
		hint string // of Dial
	}{
		"before TLS":    {ClientOptions{Address: mute, CAFile: id.certFile}, "TLS: no reply within 15s: " + accepts + "a firewall passes no data, or the path loses packets of 1200 bytes and tells no smaller MTU"},
		"after TLS":     {ClientOptions{Address: silent, CAFile: id.certFile}, "HTTP: no reply within 15s: " + accepts + "or a firewall passes no data"},
		"after welcome": {o, ""},
	} {
		o := c.o
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errNoReply)
		client, err := Dial(ctx, o)
		if err == nil { // it has sent Welcome, and replies to no request
			_, err = client.Open(ctx, Open{}, nil)
			client.Close()
		} else if !strings.Contains(err.Error(), c.hint) {
			t.Errorf("%s: %v, want %q", name, err, c.hint)
		}
		if !errors.Is(err, errNoReply) || !strings.Contains(err.Error(), o.Address) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

func TestPinNeedsNoAuthorityNameOrDate(t *testing.T) {
	id := newIdentity(t, time.Now().Add(-time.Hour), "192.0.2.1")
	address := serve(t, ServerTLS(showing(id.cert), nil), func(w http.ResponseWriter, _ *http.Request) { Refuse(w, &Refusal{Reason: Busy}) })
	for _, pin := range []string{PinOf(id.cert.Leaf), strings.ToUpper(PinOf(id.cert.Leaf))} {
		if _, err := Dial(t.Context(), ClientOptions{Address: address, Pin: pin}); !errors.As(err, new(*Refusal)) {
			t.Error(err)
		}
	}
}

func TestServerNameReplacesTheAddress(t *testing.T) {
	id := newIdentity(t, time.Now().Add(time.Hour), "server.example")
	address := serve(t, ServerTLS(showing(id.cert), nil), func(w http.ResponseWriter, _ *http.Request) { Refuse(w, &Refusal{Reason: Busy}) })
	if _, err := Dial(t.Context(), ClientOptions{Address: address, CAFile: id.certFile, ServerName: "server.example"}); !errors.As(err, new(*Refusal)) {
		t.Error(err)
	}
}

func TestClientCertificateReachesTheLoadServer(t *testing.T) {
	id, client := valid(t), valid(t)
	clients := x509.NewCertPool()
	clients.AddCert(client.cert.Leaf)
	got := make(chan string, 1)
	address := serve(t, ServerTLS(showing(id.cert), clients), func(w http.ResponseWriter, r *http.Request) {
		pin := "none"
		if len(r.TLS.VerifiedChains) > 0 {
			pin = PinOf(r.TLS.PeerCertificates[0])
		}
		got <- pin
		Refuse(w, &Refusal{Reason: Busy})
	})
	o := ClientOptions{Address: address, CAFile: id.certFile}
	if _, err := Dial(t.Context(), o); !errors.As(err, new(*Refusal)) || <-got != "none" {
		t.Errorf("without a certificate: %v", err)
	}
	o.CertFile, o.KeyFile = client.certFile, client.keyFile
	if _, err := Dial(t.Context(), o); !errors.As(err, new(*Refusal)) || <-got != PinOf(client.cert.Leaf) {
		t.Errorf("with a certificate: %v", err)
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]ClientOptions{
		`address "": it must be a host name or address with an optional port`:                                  {},
		`address "host:0": its port must be between 1 and 65535`:                                               {Address: "host:0"},
		`address "host:web": its port must be between 1 and 65535`:                                             {Address: "host:web"},
		`address "a:1:2": its port must be between 1 and 65535`:                                                {Address: "a:1:2"},
		`family "ipv5": want any, ipv4 or ipv6`:                                                                {Address: "127.0.0.1:1", Family: "ipv5"},
		`pin "sha256:00": it must be "sha256:" and 64 hex digits, as the load server logs it; it has 2 digits`: {Address: "127.0.0.1:1", Pin: "sha256:00"},
		`it does not begin with "sha256:"`:                                                                     {Address: "127.0.0.1:1", Pin: "md5:00"},
		"needs both cert_file and key_file":                                                                    {Address: "127.0.0.1:1", KeyFile: empty},
		"client certificate: keyfile: open /nowhere":                                                           {Address: "127.0.0.1:1", KeyFile: empty, CertFile: "/nowhere"},
		"ca_file: open /nowhere":                                                                               {Address: "127.0.0.1:1", CAFile: "/nowhere"},
		"empty: no certificate in PEM in it":                                                                   {Address: "127.0.0.1:1", CAFile: empty},
		"the token is longer than 4096 bytes":                                                                  {Address: "127.0.0.1:1", Token: strings.Repeat("x", 4097)},
		"byte 1 of the token is a space or not printable ASCII":                                                {Address: "127.0.0.1:1", Token: "x\r\nHost: y"},
	} {
		if _, err := Dial(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "loadcontrol: ") {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestAddressWithoutAPortHasTheDefault(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for address, want := range map[string]string{
		"192.0.2.1":        "192.0.2.1:8620",
		"2001:db8::1":      "[2001:db8::1]:8620",
		"[2001:db8::1]:99": "[2001:db8::1]:99",
		"host.example":     "host.example:8620",
		"host.example:99":  "host.example:99",
	} {
		if _, err := Dial(ended, ClientOptions{Address: address}); err == nil || !strings.HasPrefix(err.Error(), "load server "+want+": ") {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

func TestLocalAddressIsDialedFrom(t *testing.T) {
	from := make(chan string, 1)
	address := reply(t, func(c net.Conn) { from <- c.RemoteAddr().(*net.TCPAddr).IP.String() })
	_, _ = Dial(t.Context(), ClientOptions{Address: address, Local: netip.MustParseAddr("127.0.0.9")})
	if got := <-from; got != "127.0.0.9" {
		t.Errorf("dialed from %s", got)
	}
}

// A link-local address has a zone, which is of this host only.
func TestUpgradeOverALinkLocalAddressHasNoZoneInItsHost(t *testing.T) {
	near, far := net.Pipe()
	hosts := make(chan string, 1)
	go func() {
		defer far.Close()
		r, err := http.ReadRequest(bufio.NewReader(far))
		if err != nil {
			hosts <- err.Error()
			return
		}
		hosts <- r.Host
	}()
	_, err := upgrade(near, &ClientOptions{}, "[fe80::1%eth0]:8620")
	_ = near.Close()
	if host := <-hosts; host != "[fe80::1]:8620" {
		t.Errorf("host %q: %v", host, err)
	}
}
