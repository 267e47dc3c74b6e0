package loadcontrol

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// validRequest returns the request of a valid client.
func validRequest() *http.Request {
	r := httptest.NewRequest(http.MethodGet, Path, http.NoBody)
	r.Header.Set("Connection", "keep-alive, Upgrade")
	r.Header.Set("Upgrade", Protocol)
	return r
}

func TestOnlyAnUpgradeToThisProtocolIsAccepted(t *testing.T) {
	if refusal := upgradable(validRequest()); refusal != nil {
		t.Fatal(refusal)
	}
	for _, c := range []struct {
		name   string
		spoil  func(*http.Request)
		reason Reason
		status int
	}{
		{"POST", func(r *http.Request) { r.Method = http.MethodPost }, BadRequest, 400},
		{"HTTP/2", func(r *http.Request) { r.ProtoMajor, r.ProtoMinor = 2, 0 }, BadRequest, 400},
		{"HTTP/1.0", func(r *http.Request) { r.ProtoMinor = 0 }, BadRequest, 400},
		{"content", func(r *http.Request) { r.ContentLength = 3 }, BadRequest, 400},
		{"content of unknown length", func(r *http.Request) { r.ContentLength = -1 }, BadRequest, 400},
		{"a browser", func(r *http.Request) { r.Header = http.Header{} }, BadRequest, 400},
		{"no Connection", func(r *http.Request) { r.Header.Del("Connection") }, BadRequest, 400},
		{"websocket", func(r *http.Request) { r.Header.Set("Upgrade", "websocket") }, BadRequest, 400},
		{"a later version", func(r *http.Request) { r.Header.Set("Upgrade", "oneway-test/9") }, WrongVersion, 426},
		{"an older version", func(r *http.Request) { r.Header.Set("Upgrade", "oneway-test/1") }, WrongVersion, 426},
		{"a connection that cannot be hijacked", func(*http.Request) {}, BadRequest, 400},
	} {
		r, w := validRequest(), httptest.NewRecorder()
		c.spoil(r)
		conn, err := Accept(w, r)
		if conn != nil || err == nil {
			t.Fatalf("%s: accepted", c.name)
		}
		var said Refusal
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || said.Reason != c.reason || w.Code != c.status || said.Detail == "" {
			t.Errorf("%s: %d %s (%v), want %d %s", c.name, w.Code, w.Body, err, c.status, c.reason)
		}
	}
}

// A client of version 1 parses the reason of the response and shows its detail.
func TestRefusalOfAnotherVersionNamesBothInOneLine(t *testing.T) {
	r, w := validRequest(), httptest.NewRecorder()
	r.Header.Set("Upgrade", "oneway-test/1")
	if _, err := Accept(w, r); err == nil {
		t.Fatal("accepted")
	}
	want := `{"reason":"wrong_version","detail":"this load server uses oneway-test/4, the client oneway-test/1: run the same version of oneway at both ends"}`
	if got := w.Body.String(); got != want || w.Header().Get("Upgrade") != Protocol {
		t.Errorf("%s, %v\nwant %s", got, w.Header(), want)
	}
}

func TestRefusalHasAStatusAndRetryAfter(t *testing.T) {
	for _, c := range []struct {
		refusal Refusal
		status  int
		header  map[string]string
	}{
		{Refusal{Reason: Unauthorized}, 401, map[string]string{"WWW-Authenticate": `Bearer realm="oneway"`, "Retry-After": ""}},
		{Refusal{Reason: WrongVersion}, 426, map[string]string{"Upgrade": Protocol, "Connection": "close, Upgrade"}},
		{Refusal{Reason: BadRequest}, 400, nil},
		{Refusal{Reason: Busy, RetryAfter: time.Millisecond}, 503, map[string]string{"Retry-After": "1", "Connection": "close"}},
		{Refusal{Reason: TooMany, RetryAfter: time.Minute}, 429, map[string]string{"Retry-After": "60"}},
		{Refusal{Reason: RateLimit}, 403, nil},
		{Refusal{Reason: TimeLimit}, 403, nil},
		{Refusal{Reason: DayLimit, RetryAfter: 3*time.Hour + 1}, 429, map[string]string{"Retry-After": "10801"}},
		{Refusal{Reason: Unproved}, 403, nil},
		{Refusal{Reason: ShuttingDown, RetryAfter: time.Second}, 503, map[string]string{"Retry-After": "1"}},
	} {
		w := httptest.NewRecorder()
		Refuse(w, &c.refusal)
		if w.Code != c.status || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v, want %d", c.refusal.Reason, w.Code, w.Header(), c.status)
		}
		for name, want := range c.header {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s: %q, want %q", c.refusal.Reason, name, got, want)
			}
		}
	}
}

func TestBearerTokenIsOneValueOfOneHeader(t *testing.T) {
	for _, c := range []struct {
		headers []string
		want    string
		ok      bool
	}{
		{[]string{"Bearer abc"}, "abc", true},
		{[]string{"bearer  abc "}, "abc", true},
		{nil, "", false},
		{[]string{"Bearer"}, "", false},
		{[]string{"Bearer "}, "", false},
		{[]string{"Bearer a b"}, "", false},
		{[]string{"Basic abc"}, "", false},
		{[]string{"Bearer abc", "Bearer def"}, "", false},
		{[]string{"Bearer " + strings.Repeat("x", 5000)}, "", false},
	} {
		r := validRequest()
		r.Header["Authorization"] = c.headers
		if got, ok := BearerToken(r); got != c.want || ok != c.ok {
			t.Errorf("%.40q: %.40q %v, want %q %v", c.headers, got, ok, c.want, c.ok)
		}
	}
}

// The client sends the first frame with the request, so that the HTTP server reads it before the
// upgrade.
func TestFrameSentWithTheRequestIsRead(t *testing.T) {
	id := valid(t)
	got := make(chan string, 1)
	address := serve(t, ServerTLS(showing(id.cert), nil), func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		m, _, err := c.Read(t.Context())
		got <- fmt.Sprint(m.name(), err)
	})
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request := "GET " + Path + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: " + Protocol + "\r\n\r\n"
	io.WriteString(c, request+string(frame([]byte(`{"traffic":{"name":"x"}}`), 0)))
	if m := <-got; m != "x<nil>" {
		t.Error(m)
	}
}

func TestLoadServerSpeaksTLS13AndHTTP1Only(t *testing.T) {
	id := valid(t)
	address := serve(t, ServerTLS(showing(id.cert), nil), func(http.ResponseWriter, *http.Request) {})
	if _, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 is accepted")
	}
	if _, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}); err == nil {
		t.Error("HTTP/2 is accepted")
	}
}

func FuzzRefusal(f *testing.F) {
	f.Add(429, "5", []byte(`{"reason":"busy","detail":"x","retry_after_ns":5}`))
	f.Add(403, "-1", []byte(`{"reason":"later version's","detail":"\u0000","unknown":1}`))
	f.Fuzz(func(t *testing.T, status int, retry string, body []byte) {
		reply := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {retry}}, Body: io.NopCloser(strings.NewReader(string(body)))}
		err := refused(reply)
		var r *Refusal
		if !errors.As(err, &r) {
			if err == nil {
				t.Error("no error")
			}
			return
		}
		m := Message{Refusal: r}
		if err := m.check(); err != nil || r.ID != 0 || len(r.Detail) > 5*maxDetailRunes {
			t.Errorf("%+v: %v", r, err)
		}
		if strings.ContainsAny(r.Error(), "\n\r\x00\x1b") {
			t.Errorf("%q", r.Error())
		}
	})
}

// FuzzRequest parses a request as the HTTP server would.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("GET /v1/session HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: oneway-test/4\r\nAuthorization: Bearer x\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(b))))
		if err != nil {
			return
		}
		if token, ok := BearerToken(r); ok && (token == "" || strings.ContainsAny(token, " \r\n\t")) {
			t.Errorf("token %q", token)
		}
		if upgradable(r) == nil && r.Header.Get("Upgrade") != Protocol {
			t.Errorf("upgraded: %q", b)
		}
	})
}
