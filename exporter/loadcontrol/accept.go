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
)

// Path is where a load server takes sessions; protocol is what the connection is upgraded to.
const (
	Path     = "/v1/session"
	protocol = "oneway-test/2"
	// family is what the protocols of all versions begin with.
	family = "oneway-test/"
)

// Accept turns an authorized request into a connection: it answers 101 and takes the
// connection from the HTTP server. Of a request that is no upgrade to this protocol it answers
// with the refusal, which is also the error. The server must not speak HTTP/2 (see
// ServerTLS), where there are no upgrades.
//
// The caller says Welcome first, and closes the connection in the end: the HTTP server's
// Shutdown does not know it any more.
func Accept(w http.ResponseWriter, r *http.Request) (*Conn, error) {
	if refusal := upgradable(r); refusal != nil {
		Refuse(w, refusal)
		return nil, fmt.Errorf("loadcontrol: from %s: %w", r.RemoteAddr, refusal)
	}
	nc, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		Refuse(w, &Refusal{Reason: BadRequest, Detail: "this connection cannot be upgraded"})
		return nil, fmt.Errorf("loadcontrol: from %s: %w", r.RemoteAddr, err)
	}
	early, err := buffered.Peek(buffered.Reader.Buffered())
	if err == nil {
		err = nc.SetDeadline(time.Now().Add(frameTime)) // the HTTP server's may still stand
	}
	if err == nil {
		_, err = io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
	}
	if err == nil {
		err = nc.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = nc.Close() // the error says more
		return nil, fmt.Errorf("%w: %s: %w", ErrLost, r.RemoteAddr, err)
	}
	return newConn(nc, early, false), nil
}

// upgradable tells why a request cannot be upgraded; nil: it can.
func upgradable(r *http.Request) *Refusal {
	asked := r.Header.Get("Upgrade")
	switch {
	case r.Method != http.MethodGet || r.ProtoMajor != 1 || r.ProtoMinor != 1:
		return &Refusal{Reason: BadRequest, Detail: "GET in HTTP/1.1 is wanted"}
	case r.ContentLength != 0:
		return &Refusal{Reason: BadRequest, Detail: "a request without content is wanted"}
	case strings.HasPrefix(asked, family) && asked != protocol:
		return &Refusal{Reason: WrongVersion, Detail: fmt.Sprintf("this load server speaks %s, and the client %.40s: run the same version of oneway at both ends", protocol, Printable(asked))}
	case asked != protocol || !httpguts.HeaderValuesContainsToken(r.Header.Values("Connection"), "upgrade"):
		return &Refusal{Reason: BadRequest, Detail: "Connection: Upgrade and Upgrade: " + protocol + " are wanted"}
	}
	return nil
}

// Status is the HTTP status of a refusal before the upgrade.
func (r Reason) Status() int {
	status := map[Reason]int{
		Unauthorized: http.StatusUnauthorized, WrongVersion: http.StatusUpgradeRequired,
		RateLimit: http.StatusForbidden, TimeLimit: http.StatusForbidden, Unproved: http.StatusForbidden,
		TooMany: http.StatusTooManyRequests, DayLimit: http.StatusTooManyRequests,
		Busy: http.StatusServiceUnavailable, Unsaved: http.StatusServiceUnavailable, ShuttingDown: http.StatusServiceUnavailable,
	}
	return cmp.Or(status[r], http.StatusBadRequest)
}

// Refuse answers a request with a refusal instead of an upgrade: the reason's Status,
// Retry-After in whole seconds, and the refusal as JSON. The connection is closed after it.
func Refuse(w http.ResponseWriter, r *Refusal) {
	body, _ := json.Marshal(r) // it has no field that could fail
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
		h.Set("Upgrade", protocol)
	}
	if r.RetryAfter > 0 {
		seconds := (r.RetryAfter + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // who is refused and gone needs no reply
}

// BearerToken is the token of a request's Authorization header (RFC 6750 section 2.1); false:
// there is none, or more than one.
func BearerToken(r *http.Request) (token string, ok bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	if !found || token == "" || !strings.EqualFold(scheme, "Bearer") || checkToken(token) != nil {
		return "", false
	}
	return token, true
}
