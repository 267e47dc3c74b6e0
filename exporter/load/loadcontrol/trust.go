package loadcontrol

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"oneway.example/exporter/core/keyfile"
)

// pinPrefix names the hash function of a pin.
const pinPrefix = "sha256:"

// PinOf returns the pin of a certificate: "sha256:" and the hex of the SHA-256 of its
// SubjectPublicKeyInfo (RFC 7469 section 2.4). A new certificate for the same key has the same
// pin.
func PinOf(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return pinPrefix + hex.EncodeToString(sum[:])
}

// CheckPin is an error with the expectation if s is no pin; nil for none.
func CheckPin(s string) error {
	if s == "" {
		return nil
	}
	_, err := parsePin(s)
	return err
}

// parsePin parses a pin. The digits may have colons between them.
func parsePin(s string) (sum [sha256.Size]byte, err error) {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("it must be %q and %d hex digits, as the load server logs it; %s", pinPrefix, 2*len(sum), fmt.Sprintf(format, args...))
	}
	digits, ok := strings.CutPrefix(strings.ToLower(s), pinPrefix)
	if !ok {
		return sum, wrong("it does not begin with %q", pinPrefix)
	}
	digits = strings.ReplaceAll(digits, ":", "")
	if i := strings.IndexFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }); i >= 0 {
		return sum, wrong("%.8q is no hex digit", string([]rune(digits[i:])[:1]))
	}
	if len(digits) != 2*len(sum) {
		return sum, wrong("it has %d digits", len(digits))
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return sum, err
	}
	return [sha256.Size]byte(raw), nil
}

// ServerTLS returns the TLS configuration of a load server: version 1.3, HTTP/1.1. certificate is
// called for each connection. With clientCAs a client may present a certificate, which must be signed
// by them; the caller decides whether it is required, as a token may replace it.
//
// Use tls.NewListener with (*http.Server).Serve: ServeTLS would add HTTP/2.
func ServerTLS(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), clientCAs *x509.CertPool) *tls.Config {
	c := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		GetCertificate:         certificate,
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true, // sessions are rare, and without tickets there is no replay
	}
	if clientCAs != nil {
		c.ClientCAs, c.ClientAuth = clientCAs, tls.VerifyClientCertIfGiven
	}
	return c
}

// clientTLS returns the TLS configuration of the options, for the dialed host.
func clientTLS(o *ClientOptions, host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, ServerName: host}
	if o.ServerName != "" {
		c.ServerName = o.ServerName
	}
	if o.CAFile != "" {
		pool, err := keyfile.CAs(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("loadcontrol: ca_file: %w", err)
		}
		c.RootCAs = pool
	}
	if o.Pin != "" {
		want, err := parsePin(o.Pin)
		if err != nil {
			return nil, fmt.Errorf("loadcontrol: pin %.80q: %w", o.Pin, err)
		}
		// A pin replaces the checks of authority, name and date; with a CA file the authority
		// is checked too.
		c.InsecureSkipVerify = o.CAFile == ""
		c.VerifyConnection = func(s tls.ConnectionState) error { return checkPin(s, want) }
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, errors.New("loadcontrol: a client certificate needs both cert_file and key_file")
	}
	if o.CertFile != "" {
		cert, err := keyfile.KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("loadcontrol: client certificate: %w", err)
		}
		// Sent whatever authorities the load server names: its alert has the reason why it refuses another.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	return c, nil
}

// pinError reports a key that differs from the pinned one.
type pinError struct{ shown string }

func (e *pinError) Error() string { return "the key is " + e.shown + ", which is not the pinned one" }

func checkPin(s tls.ConnectionState, want [sha256.Size]byte) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the load server presented no certificate")
	}
	got := sha256.Sum256(s.PeerCertificates[0].RawSubjectPublicKeyInfo)
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return &pinError{PinOf(s.PeerCertificates[0])}
	}
	return nil
}
