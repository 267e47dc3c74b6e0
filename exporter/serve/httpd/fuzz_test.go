package httpd

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// FuzzHost: a Host that is neither a name of this host nor an address is rejected.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"localhost:9862", "LOCALHOST.", "[::1]:9862", "127.0.0.1", "evil.example", "localhost.evil.example", "[localhost]", "localhost:80:80", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name := hostName(s)
		if _, err := netip.ParseAddr(name); err != nil && name == "localhost" && !strings.HasPrefix(strings.ToLower(strings.TrimPrefix(s, "[")), "localhost") {
			t.Errorf("%q is taken for this host", s)
		}
		if again := hostName(name); again != name && !strings.ContainsAny(name, ":[].") {
			t.Errorf("%q is %q, and that is %q", s, name, again)
		}
	})
}

// FuzzAcceptEncoding: a client that does not list gzip, or excludes it, gets none.
func FuzzAcceptEncoding(f *testing.F) {
	for _, s := range []string{"gzip", "gzip;q=0", "br, *;q=0.1", "x-gzip ; q=NaN", "deflate", "gzip;q=-1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if takesGzip(http.Header{"Accept-Encoding": {s}}) && !strings.Contains(strings.ToLower(s), "gzip") && !strings.Contains(s, "*") {
			t.Errorf("%q takes gzip", s)
		}
		if takesGzip(http.Header{"Accept-Encoding": {"gzip;q=0", s}}) {
			t.Errorf("gzip;q=0, %s takes gzip", s)
		}
	})
}
