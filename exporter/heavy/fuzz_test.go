package heavy

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

// FuzzHostPort: what is taken has a host and a port, and means the same when it is written with both.
func FuzzHostPort(f *testing.F) {
	for _, s := range []string{"host", "host:1", "192.0.2.1", "[2001:db8::1]:8620", "2001:db8::1", "[::1]", "[fe80::1%eth0]:8620", "[fe80::1%eth0]:9", "[h]:1", "h:0", "h:65536", ":1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, err := splitHostPort(s)
		if err != nil {
			return
		}
		if host == "" || port == 0 {
			t.Fatalf("%q is host %q and port %d", s, host, port)
		}
		if inside, _, ok := strings.Cut(strings.TrimPrefix(s, "["), "]:"); ok && s[0] == '[' && host != inside {
			t.Errorf("%q is host %q", s, host)
		}
		if strings.ContainsAny(host, "[]") {
			return // a zone of no interface
		}
		written := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if h, p, err := splitHostPort(written); err != nil || h != host || p != port {
			t.Errorf("%q is %q and %d, and %q is %q and %d, %v", s, host, port, written, h, p, err)
		}
	})
}
