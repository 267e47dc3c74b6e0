package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestHealthIsWhetherTheAgentReplies(t *testing.T) {
	reply := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/agent/-/ready" {
				status, text = http.StatusNotFound, r.URL.Path
			}
			http.Error(w, text, status)
		}
	}
	closed := httptest.NewServer(reply(http.StatusOK, ""))
	closed.Close()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	redirects := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	for name, c := range map[string]struct {
		server *httptest.Server
		want   string // part of the error; empty: healthy
	}{
		"replies":              {httptest.NewServer(reply(http.StatusOK, "oneway is ready.")), ""},
		"wants a password":     {httptest.NewServer(reply(http.StatusUnauthorized, "who?")), ""},
		"own certificate":      {httptest.NewTLSServer(reply(http.StatusOK, "oneway is ready.")), ""},
		"does not measure":     {httptest.NewServer(reply(http.StatusServiceUnavailable, "no path measures")), "/agent/-/ready: 503 Service Unavailable, want 200: no path measures"},
		"is a Prometheus":      {httptest.NewServer(reply(http.StatusOK, "Prometheus Server is Ready.")), "/agent/-/ready is not of an agent of oneway"},
		"is another server":    {redirects, "/agent/-/ready: 302 Found, want 200"},
		"controls a terminal":  {httptest.NewServer(reply(http.StatusServiceUnavailable, "\x1b[2J\u202egone")), "want 200: ?[2J?gone"},
		"HTTP to a TLS server": {httptest.NewTLSServer(nil), "400 Bad Request"},
		"HTTPS without TLS":    {httptest.NewServer(reply(http.StatusOK, "oneway is ready.")), "replies without TLS; write --url=http://127.0.0.1:"},
		"nobody":               {closed, "connection refused; does the agent run, and is this its --web.listen-address?"},
	} {
		t.Run(name, func(t *testing.T) {
			defer c.server.Close()
			address := c.server.URL
			if name == "HTTP to a TLS server" {
				address = strings.Replace(address, "https:", "http:", 1)
			}
			if name == "HTTPS without TLS" {
				address = strings.Replace(address, "http:", "https:", 1)
			}
			at, err := url.Parse(address + "/agent")
			if err != nil {
				t.Fatal(err)
			}
			at.User = url.UserPassword("probe", "secret")
			err = checkHealth(t.Context(), at, "/-/ready")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has the password of --url: %v", err)
			}
		})
	}
}
