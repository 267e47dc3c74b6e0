package slareport

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"oneway.example/exporter/serve/promapi"
)

// pipes is a net.Listener without ports: thousands of reports a second would use all of them.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) { return <-p, nil }
func (p pipes) Close() error              { return nil }
func (p pipes) Addr() net.Addr            { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p <- far
	return near, nil
}

// FuzzReply makes a report of one reply to every query: it is a report or an error, whose text has no control characters.
func FuzzReply(f *testing.F) {
	for _, body := range []string{
		`{"status":"success","data":[{"path":"a","probe":"stamp","instance":"b"}]}`, `{"status":"success","data":["a"]}`,
		`{"status":"success","data":{"result":[{"metric":{"le":"+Inf"},"values":[[1,"NaN"],[1e300,"2"]]}]}}`,
		`{"status":"success","data":{"result":[{"metric":{"path":"a","direction":"forward"},"value":[1790812800,"1e308"]}]}}`,
		`{"status":"error","error":"x\u001b[2J"}`, `[]`, ``,
	} {
		f.Add(body, body)
	}
	var labels, others string
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/series") || strings.Contains(r.URL.Path, "/label/") {
			_, _ = w.Write([]byte(labels)) // the client may have gone
			return
		}
		_, _ = w.Write([]byte(others)) // as above
	})}
	s.SetKeepAlivesEnabled(false)
	listener := make(pipes)
	go func() { _ = s.Serve(listener) }() // it lasts as long as the process
	before := http.DefaultTransport
	f.Cleanup(func() { http.DefaultTransport = before })
	memory := before.(*http.Transport).Clone()
	memory.DialContext = listener.dial
	http.DefaultTransport = memory
	from := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, first, second string) {
		labels, others = first, second
		server := &promapi.Server{URL: "http://prometheus.example"}
		_, err := Make(t.Context(), server, Options{Path: "a", From: from, To: from.AddDate(0, 0, 1), By: Day, Interval: time.Minute}, from.AddDate(0, 1, 0))
		if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
			t.Errorf("control characters in %q", err)
		}
	})
}
