package slareport

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/serve/promapi"
)

// hostile asks a server for a report, and returns the error.
func hostile(t *testing.T, url string) error {
	t.Helper()
	from := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)
	s := &promapi.Server{URL: url, Authorization: "Bearer secretword"}
	_, err := Make(t.Context(), s, Options{Path: "a", From: from, To: from.AddDate(0, 0, 1), By: Day, Interval: time.Minute}, from.AddDate(0, 1, 0))
	return err
}

// serve is a server without replies of /probe.
func serve(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("match[]") == metric.OnDemandSuccess.Name {
			fmt.Fprint(w, `{"status":"success","data":[]}`)
			return
		}
		f(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestReplyWithoutEndIsAnError(t *testing.T) {
	var sent atomic.Int64
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		spaces := []byte(strings.Repeat(" ", 1<<20))
		for ; sent.Load() < 4*promapi.MaxReplyBytes; sent.Add(int64(len(spaces))) {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
	})
	if err := hostile(t, url); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Error(err)
	}
	if sent.Load() >= 4*promapi.MaxReplyBytes {
		t.Error("all of it was read")
	}
}

func TestCredentialsGoToNoOtherServer(t *testing.T) {
	got := "nothing"
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") })
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+r.URL.Path, http.StatusTemporaryRedirect)
	})
	if err := hostile(t, url); err == nil || !strings.Contains(err.Error(), "it redirects to "+other) || got != "nothing" {
		t.Errorf("the other server got %q; %v", got, err)
	}
}

func TestMessagesHaveNoControlCharactersOfTheServer(t *testing.T) {
	evil := `\u001b]0;x\u0007` + strings.Repeat("x", 10_000)
	for name, body := range map[string]string{
		"error":  `{"status":"error","error":"` + evil + `"}`,
		"labels": `{"status":"success","data":[{"probe":"` + evil + `","instance":"a"},{"probe":"b","instance":"` + evil + `"}]}`,
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
		if err := hostile(t, url); err == nil || strings.ContainsAny(err.Error(), "\x1b\a") || len(err.Error()) > 2000 {
			t.Errorf("%s: %.300q", name, err)
		}
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "label") {
			fmt.Fprintf(w, `{"status":"success","data":["%s"]}`, evil)
			return
		}
		fmt.Fprint(w, `{"status":"success","data":[]}`)
	})
	err := hostile(t, url)
	if unknown, ok := errors.AsType[*PathError](err); !ok || len(unknown.Known) != 1 || strings.Contains(unknown.Known[0], "\x1b") || len(unknown.Known[0]) > 400 {
		t.Errorf("%.300q", err)
	}
}

// TestStatusOfAServerThatIsNotPrometheusIsPrintable: the text of a status is the server's, and so is the form of its data.
func TestStatusOfAServerThatIsNotPrometheusIsPrintable(t *testing.T) {
	for status, body := range map[string]string{
		"401 \x1b]0;x\a": "", "200 \x1b[2J": "<html>", "200 OK": `{"status":"success","data":{"a":1}}`,
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
		})
		err := hostile(t, url)
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\a") || strings.Contains(err.Error(), "Go value") || !strings.Contains(err.Error(), status[:4]) {
			t.Errorf("status %q: %q", status, err)
		}
	}
}

func TestPasswordOfTheAddressIsNotPrinted(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	for _, address := range []string{
		strings.Replace(url, "http://", "http://me:hunter2@", 1), "http://me:hunter2@127.0.0.1:1", "http://me:hunter 2@x", "http://me:hunter2%zz@x",
	} {
		if err := hostile(t, address); err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestValueThatIsNoNumberIsNoData(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		data := `{"result":[]}`
		switch {
		case strings.HasSuffix(r.URL.Path, "series"):
			data = `[{"path":"a"}]`
		case strings.HasSuffix(r.URL.Path, "query_range"):
			data = `{"result":[{"values":[[1,"NaN"],[2,"NaN"]]}]}`
		}
		fmt.Fprintf(w, `{"status":"success","data":%s}`, data)
	})
	if err := hostile(t, url); err == nil || !strings.Contains(err.Error(), "has no data") {
		t.Errorf("got %v, want an error: NaN is neither up nor down", err)
	}
}
