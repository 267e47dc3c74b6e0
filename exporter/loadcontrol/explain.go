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
)

// errNoReply is why a Dial that took too long was ended.
var errNoReply = fmt.Errorf("no reply within %v", DialTime)

// stepError says at which step the connection failed.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// explain names the address, and says what to do where that is known.
func explain(ctx context.Context, address string, err error) error {
	if ctx.Err() != nil && !errors.As(err, new(*Refusal)) {
		err = context.Cause(ctx)
	}
	if hint := hint(err); hint != "" {
		return fmt.Errorf("loadcontrol: %s: %w: %s", address, err, hint)
	}
	return fmt.Errorf("loadcontrol: %s: %w", address, err)
}

// hint says what can be done about an error; empty: nobody knows.
func hint(err error) string {
	unknown, isUnknown := errors.AsType[*tls.CertificateVerificationError](err)
	remote, isRemote := errors.AsType[*net.OpError](err)
	switch {
	case errors.As(err, new(*Refusal)):
		return ""
	case errors.As(err, new(*pinError)):
		return "if the load server has a new key, take the new pin from its log; if not, somebody else answers"
	case isUnknown:
		return certificateHint(unknown)
	case errors.As(err, new(tls.RecordHeaderError)):
		return "no TLS there: is it the load server's port?"
	case isRemote && remote.Op == "remote error":
		return alertHint(remote.Err.Error())
	case errors.Is(err, syscall.ECONNREFUSED):
		return "is a load server listening on this port?"
	case errors.Is(err, errNoReply), errors.Is(err, os.ErrDeadlineExceeded):
		return "is a load server listening there, and does a firewall let this TCP port through?"
	case errors.As(err, new(*stepError)) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)):
		return "it ended the connection without a reply: is it a load server?"
	}
	return ""
}

// alertHint says which of a client's own settings explain an alert of the peer's (RFC 8446
// section 6.2). Package crypto/tls gives it in words only.
func alertHint(alert string) string {
	switch alert {
	case "tls: certificate required", "tls: bad certificate", "tls: unknown certificate authority":
		return "it wants a client certificate of its own authority: see cert_file and key_file"
	case "tls: protocol version not supported":
		return "it does not speak TLS 1.3: is it a load server?"
	}
	return ""
}

// certificateHint says what is wrong with a load server's certificate.
func certificateHint(e *tls.CertificateVerificationError) string {
	if len(e.UnverifiedCertificates) == 0 {
		return ""
	}
	shown := PinOf(e.UnverifiedCertificates[0])
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](e.Err)
	switch {
	case errors.As(e.Err, new(x509.HostnameError)):
		return "dial it by a name that is in its certificate, set server_name to one, or pin its key (it showed " + shown + ")"
	case isInvalid && invalid.Reason == x509.Expired:
		return "renew its certificate, set this host's clock, or pin its key (it showed " + shown + ")"
	default:
		return "set ca_file to the authority that signed it, or pin to its key: it showed " + shown + ", compare this with what the load server logged"
	}
}

// refused is the error of a reply that is no upgrade: the refusal in it, or what stands
// there in place of a load server.
func refused(reply *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxHeaderBytes))
	if err == nil {
		if r := parseRefusal(reply, body); r != nil {
			return r
		}
	}
	status := strconv.Itoa(reply.StatusCode) + " " + http.StatusText(reply.StatusCode)
	return &stepError{"HTTP", fmt.Errorf("it answered %s, neither an upgrade nor a refusal: a proxy or another web server stands there; dial the load server itself", status)}
}

// parseRefusal reads the refusal of a reply; nil: there is none. A load server of a later
// version is understood as far as it goes.
func parseRefusal(reply *http.Response, body []byte) *Refusal {
	var r Refusal
	if reply.StatusCode < 400 || json.Unmarshal(body, &r) != nil || r.Reason == "" {
		return nil
	}
	if !slices.Contains(Reasons(), r.Reason) {
		i := slices.IndexFunc(Reasons(), func(known Reason) bool { return known.Status() == reply.StatusCode })
		if i < 0 {
			return nil
		}
		r.Reason = Reasons()[i]
	}
	r.ID = 0
	r.Detail = Printable(r.Detail)
	if r.Reason == WrongVersion && !strings.Contains(r.Detail, protocol) {
		r.Detail += ", and this client " + protocol + ": run the same version of oneway at both ends"
	}
	if seconds, err := strconv.ParseInt(reply.Header.Get("Retry-After"), 10, 32); err == nil && r.RetryAfter <= 0 {
		r.RetryAfter = time.Duration(seconds) * time.Second
	}
	r.RetryAfter = max(r.RetryAfter, 0)
	return &r
}

// Printable is a text of the peer's that can stand in an error: one line, not too long.
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

// maxDetailRunes of a peer's explanation are shown.
const maxDetailRunes = 300
