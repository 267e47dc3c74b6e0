package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReportSuggestsAPathAndSendsItsCredentials(t *testing.T) {
	var authorization string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		data := `[]`
		if strings.Contains(r.URL.Path, "/label/") {
			data = `["berlin","hamburg"]`
		}
		fmt.Fprintf(w, `{"status":"success","data":%s}`, data)
	}))
	defer server.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("me:word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, time.November, 3, 0, 0, 0, 0, time.UTC)
	f := &reportFlags{path: "berlim", by: "month", zone: "UTC", interval: time.Minute, server: prometheusFlags{url: server.URL, basic: secret}}
	if err := f.run(t.Context(), &bytes.Buffer{}, now); err == nil || !strings.Contains(err.Error(), `has no path "berlim"; did you mean "berlin"?`) {
		t.Error(err)
	}
	if authorization != "Basic bWU6d29yZA==" {
		t.Errorf("authorization %q", authorization)
	}
	f.path, f.server.basic, f.server.bearer = "munich", "", secret
	if err := f.run(t.Context(), &bytes.Buffer{}, now); err == nil || !strings.Contains(err.Error(), "it has berlin, hamburg") {
		t.Error(err)
	}
	if authorization != "Bearer me:word" {
		t.Errorf("authorization %q", authorization)
	}
}

func TestReportFlags(t *testing.T) {
	now := time.Date(2026, time.November, 3, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ from, to, zone, want string }{
		{"", "", "Europe/Berlin", "2026-10-01T00:00:00+02:00 2026-11-01T00:00:00+01:00"},
		{"2026-09-01", "", "UTC", "2026-09-01T00:00:00Z 2026-10-01T00:00:00Z"},
		{"", "2026-09-01", "UTC", "2026-08-01T00:00:00Z 2026-09-01T00:00:00Z"},
		{"2026-10-01T06:00:00Z", "2026-10-02", "Asia/Tokyo", "2026-10-01T15:00:00+09:00 2026-10-02T00:00:00+09:00"},
	} {
		o, err := (&reportFlags{from: c.from, to: c.to, zone: c.zone, interval: time.Minute}).options(now)
		if got := o.From.Format(time.RFC3339) + " " + o.To.Format(time.RFC3339); err != nil || got != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
	for want, f := range map[string]reportFlags{
		`--from is "october"; it must be a date`:     {from: "october"},
		`--timezone is "Berlin"; it must be a name`:  {zone: "Berlin"},
		"--from is 2026-10-02T00:00:00Z; it must be": {from: "2026-10-02", to: "2026-10-01", zone: "UTC"},
		"--interval is 7m0s; it must be between":     {interval: 7 * time.Minute},
		"--path or --all is required":                {path: "none"},
	} {
		f.path, f.all = map[bool]string{false: "berlin"}[f.path != ""], false
		if f.interval == 0 {
			f.interval = time.Minute
		}
		err := f.run(t.Context(), &bytes.Buffer{}, now)
		if _, usage := errors.AsType[usageError](err); !usage || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
