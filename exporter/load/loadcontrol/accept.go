package loadcontrol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"oneway.example/exporter/core/runreason"
)

// Path is the HTTP path of a session.
const Path = "/v1/session"

// Protocol is the value of Upgrade: both ends need the same.
const Protocol = family + "4"

// family is the prefix of the protocol names of all versions.
const family = "oneway-test/"

// Accept upgrades an authorized request: it replies 101 and hijacks the connection. It refuses a
// request that is no upgrade to this protocol; the error is then the refusal. The server must not
// offer HTTP/2, which has no upgrades; see ServerTLS.
//
// The caller sends Welcome first and closes the connection at the end: Shutdown of the HTTP server
// does not close it.
func Accept(w http.ResponseWriter, r *http.Request) (*Conn, error) {
	if refusal := upgradable(r); refusal != nil {
		Refuse(w, refusal)
		return nil, fmt.Errorf("loadcontrol: from %s: %w", r.RemoteAddr, refusal)
	}
	nc, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		Refuse(w, &Refusal{Reason: BadRequest, Detail: "the connection cannot be upgraded"})
		return nil, fmt.Errorf("loadcontrol: from %s: %w", r.RemoteAddr, err)
	}
	early, err := buffered.Peek(buffered.Reader.Buffered())
	if err == nil {
		err = nc.SetDeadline(time.Now().Add(frameTime)) // the deadline of the HTTP server may still be set
	}
	if err == nil {
		_, err = io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+Protocol+"\r\n\r\n")
	}
	if err == nil {
		err = nc.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = nc.Close() // err is returned
		return nil, fmt.Errorf("%w: %s: %w", ErrLost, r.RemoteAddr, err)
	}
	return newConn(nc, early, false), nil
}

// upgradable returns why a request cannot be upgraded; nil: it can.
func upgradable(r *http.Request) *Refusal {
	requested := r.Header.Get("Upgrade")
	switch {
	case r.Method != http.MethodGet || r.ProtoMajor != 1 || r.ProtoMinor != 1:
		return &Refusal{Reason: BadRequest, Detail: "the request must be GET in HTTP/1.1"}
	case r.ContentLength != 0:
		return &Refusal{Reason: BadRequest, Detail: "the request must have no content"}
	case strings.HasPrefix(requested, family) && requested != Protocol:
		return &Refusal{Reason: WrongVersion, Detail: fmt.Sprintf("this load server uses %s, the client %.40s: run the same version of oneway at both ends", Protocol, Printable(requested))}
	case requested != Protocol || !httpguts.HeaderValuesContainsToken(r.Header.Values("Connection"), "upgrade"):
		return &Refusal{Reason: BadRequest, Detail: "the request must have Connection: Upgrade and Upgrade: " + Protocol}
	}
	return nil
}

// Status returns the HTTP status of a refusal before the upgrade.
func (r Reason) Status() int {
	return cmp.Or(runreason.Find(string(r)).Status, http.StatusBadRequest)
}

// Refuse replies with a refusal instead of an upgrade: the reason's Status, Retry-After in whole
// seconds, and the refusal as JSON. The connection is closed after it.
func Refuse(w http.ResponseWriter, r *Refusal) {
	body, _ := json.Marshal(r) // no field can fail
	status, h := r.Reason.Status(), w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close")
	switch status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="oneway"`)
	case http.StatusUpgradeRequired:
		h.Set("Connection", "close, Upgrade")
		h.Set("Upgrade", Protocol)
	}
	if r.RetryAfter > 0 {
		seconds := (r.RetryAfter + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have closed
}

// BearerToken returns the token of a request's Authorization header (RFC 6750 section 2.1); false
// if there is none or more than one.
func BearerToken(r *http.Request) (token string, ok bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if !found || token == "" || !strings.EqualFold(scheme, "Bearer") || CheckToken(token) != nil {
		return "", false
	}
	return token, true
}
