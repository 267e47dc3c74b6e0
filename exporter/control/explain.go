package control

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

// errNoAnswer is why a Dial that took too long was ended.
var errNoAnswer = fmt.Errorf("no answer within %v", DialTime)

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
		return fmt.Errorf("control: %s: %w: %s", address, err, hint)
	}
	return fmt.Errorf("control: %s: %w", address, err)
}

// hint says what can be done about an error; empty: nobody knows.
func hint(err error) string {
	unknown, isUnknown := errors.AsType[*tls.CertificateVerificationError](err)
	remote, isRemote := errors.AsType[*net.OpError](err)
	switch {
	case errors.As(err, new(*Refusal)):
		return ""
	case errors.As(err, new(*pinError)):
		return "if the responder has a new key, take the new pin from its log; if not, somebody else answers"
	case isUnknown:
		return certificateHint(unknown)
	case errors.As(err, new(tls.RecordHeaderError)):
		return "no TLS there: is it the responder's port?"
	case isRemote && remote.Op == "remote error":
		return alertHint(remote.Err.Error())
	case errors.Is(err, syscall.ECONNREFUSED):
		return "is a responder listening on this port?"
	case errors.Is(err, errNoAnswer), errors.Is(err, os.ErrDeadlineExceeded):
		return "is a responder listening there, and does a firewall let this TCP port through?"
	case errors.As(err, new(*stepError)) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)):
		return "it ended the connection without an answer: is it a responder?"
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
		return "it does not speak TLS 1.3: is it a responder?"
	}
	return ""
}

// certificateHint says what is wrong with a responder's certificate.
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
		return "set ca_file to the authority that signed it, or pin to its key: it showed " + shown + ", compare this with what the responder logged"
	}
}

// refused is the error of an answer that is no upgrade: the refusal in it, or what stands
// there in place of a responder.
func refused(answer *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxHeaderBytes))
	if err == nil {
		if r := parseRefusal(answer, body); r != nil {
			return r
		}
	}
	status := strconv.Itoa(answer.StatusCode) + " " + http.StatusText(answer.StatusCode)
	return &stepError{"HTTP", fmt.Errorf("it answered %s, neither an upgrade nor a refusal: a proxy or another web server stands there; dial the responder itself", status)}
}

// parseRefusal reads the refusal of an answer; nil: there is none. A responder of a later
// version is understood as far as it goes.
func parseRefusal(answer *http.Response, body []byte) *Refusal {
	var r Refusal
	if answer.StatusCode < 400 || json.Unmarshal(body, &r) != nil || r.Reason == "" {
		return nil
	}
	if !slices.Contains(Reasons(), r.Reason) {
		i := slices.IndexFunc(Reasons(), func(known Reason) bool { return known.Status() == answer.StatusCode })
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
	if seconds, err := strconv.ParseInt(answer.Header.Get("Retry-After"), 10, 32); err == nil && r.RetryAfter <= 0 {
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
