package loadcontrol

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/ipheader"
)

// errNoReply is the cause of a Dial that timed out.
var errNoReply = fmt.Errorf("no reply within %v", DialTimeout)

// ServerError is an error of a client's session with the load server at Address.
type ServerError struct {
	// Address is the host:port of the load server.
	Address string
	Err     error
}

// Error is "load server ADDRESS:PORT: ...".
func (e *ServerError) Error() string { return "load server " + e.Address + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *ServerError) Unwrap() error { return e.Err }

// Wrap returns an error of the session with the load server.
func (c *Client) Wrap(err error) error { return &ServerError{c.Remote().String(), err} }

// phaseError names the step at which the connection failed.
type phaseError struct {
	step string
	err  error
}

// phaseTLS is the step of the handshake.
const phaseTLS = "TLS"

func (e *phaseError) Error() string { return e.step + ": " + e.err.Error() }
func (e *phaseError) Unwrap() error { return e.err }

// explain adds the address and, if known, a remedy.
func explain(ctx context.Context, address string, err error) error {
	if ctx.Err() != nil && !errors.As(err, new(*Refusal)) {
		phase, isPhase := errors.AsType[*phaseError](err)
		if err = context.Cause(ctx); isPhase {
			err = &phaseError{phase.step, err}
		}
	}
	if hint := hint(err); hint != "" {
		err = fmt.Errorf("%w: %s", err, hint)
	}
	return &ServerError{address, err}
}

// hint returns a remedy for an error; empty: none is known.
func hint(err error) string {
	unknown, isUnknown := errors.AsType[*tls.CertificateVerificationError](err)
	remote, isRemote := errors.AsType[*net.OpError](err)
	phase, inPhase := errors.AsType[*phaseError](err)
	const acceptsOnly = "the port accepts connections and sends nothing: another program listens there, a load server that hangs"
	switch {
	case errors.As(err, new(*Refusal)):
		return ""
	case errors.As(err, new(*pinError)):
		return "if the load server has a new key, use the pin in its log; otherwise another server replies"
	case isUnknown:
		return certificateHint(unknown)
	case errors.As(err, new(tls.RecordHeaderError)):
		return "the reply is not TLS: is it the load server's port?"
	case isRemote && remote.Op == "remote error":
		return alertHint(remote.Err.Error())
	case hostport.LookupRemedy(err) != "":
		return hostport.LookupRemedy(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "is a load server listening on this port?"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EACCES):
		return "the host is down, a route to it is missing, or a firewall rejects the port: `ip route get` shows the route"
	case errors.Is(err, errNoReply) && inPhase && phase.step == phaseTLS: // its segments are the first long ones
		return fmt.Sprintf("%s, a firewall passes no data, or the path loses packets of %d bytes and tells no smaller MTU", acceptsOnly, ipheader.AnyPathBytes)
	case errors.Is(err, errNoReply) && inPhase:
		return acceptsOnly + ", or a firewall passes no data"
	case errors.Is(err, errNoReply), errors.Is(err, os.ErrDeadlineExceeded):
		return "is a load server listening there, and does a firewall pass this TCP port?"
	case inPhase && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)):
		if phase.step == phaseTLS { // the load server waits less than a client
			return fmt.Sprintf("the peer closed the connection without a reply: is it a load server, and does the path carry packets of %d bytes, both ways?", ipheader.AnyPathBytes)
		}
		return "the peer closed the connection without a reply: is it a load server?"
	}
	return ""
}

// alertHint returns the remedy for a TLS alert of the peer (RFC 8446 section 6.2). crypto/tls has
// no error values for alerts, only texts.
func alertHint(alert string) string {
	switch alert {
	case "tls: certificate required", "tls: bad certificate", "tls: unknown certificate authority":
		return "the load server requires a client certificate of its own authority: see cert_file and key_file"
	case "tls: expired certificate":
		return "the client certificate (cert_file) has expired or is not yet valid by the load server's clock: renew it, or set that clock"
	case "tls: protocol version not supported":
		return "the peer does not support TLS 1.3: is it a load server?"
	}
	return ""
}

// certificateHint returns the remedy for an invalid certificate of the load server.
func certificateHint(e *tls.CertificateVerificationError) string {
	if len(e.UnverifiedCertificates) == 0 {
		return ""
	}
	shown := PinOf(e.UnverifiedCertificates[0])
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](e.Err)
	switch {
	case errors.As(e.Err, new(x509.HostnameError)):
		return "use a name in its certificate, or pin its key (it presented " + shown + ")"
	case isInvalid && invalid.Reason == x509.Expired:
		return "renew its certificate, set this host's clock, or pin its key (it presented " + shown + ")"
	default:
		return "set ca_file to the authority that signed it, or pin to its key: it presented " + shown + ", compare this with the log of the load server"
	}
}

// refused is the error of a response that is no upgrade: the refusal in it, or a hint that the peer is
// no load server.
func refused(reply *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxHeaderBytes))
	if err == nil {
		if r := parseRefusal(reply, body); r != nil {
			return r
		}
	}
	status := strconv.Itoa(reply.StatusCode) + " " + http.StatusText(reply.StatusCode)
	return &phaseError{"HTTP", fmt.Errorf("the response is %s, neither an upgrade nor a refusal: it is from a proxy or another web server; dial the load server itself", status)}
}

// parseRefusal returns the refusal in a response; nil: there is none. An unknown reason of a later
// version is mapped by its HTTP status.
func parseRefusal(reply *http.Response, body []byte) *Refusal {
	var r Refusal
	if reply.StatusCode < 400 || json.Unmarshal(body, &r) != nil || r.Reason == "" {
		return nil
	}
	if !slices.Contains(Reasons(), r.Reason) {
		if !isWord(string(r.Reason)) {
			return nil
		}
		i := slices.IndexFunc(Reasons(), func(known Reason) bool { return known.Status() == reply.StatusCode })
		if i < 0 {
			return nil
		}
		r.Reason = Reasons()[i]
	}
	r.ID = 0
	r.Detail = Printable(r.Detail)
	if r.Reason == WrongVersion && !strings.Contains(r.Detail, Protocol) {
		r.Detail += ", and this client " + Protocol + ": run the same version of oneway at both ends"
	}
	if seconds, err := strconv.ParseInt(reply.Header.Get("Retry-After"), 10, 32); err == nil && r.RetryAfter <= 0 {
		r.RetryAfter = time.Duration(seconds) * time.Second
	}
	r.RetryAfter = max(r.RetryAfter, 0)
	return &r
}

// isWord reports whether a text is spelled as a Reason: other web servers have a JSON document with a reason, too, such as the API server of
// Kubernetes ("Forbidden").
func isWord(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') })
}

// Printable returns a text of the peer for use in an error: one line, bounded.
func Printable(s string) string {
	s = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, s)
	if runes := []rune(s); len(runes) > maxDetailRunes {
		s = string(runes[:maxDetailRunes]) + "..."
	}
	return s
}

// maxDetailRunes is the most characters of a peer's text.
const maxDetailRunes = 300
