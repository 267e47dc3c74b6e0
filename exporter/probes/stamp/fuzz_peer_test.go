package stamp

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

// FuzzPeer: what is taken has a host and a port, and means the same when it is written with both.
func FuzzPeer(f *testing.F) {
	for _, s := range []string{"host", "host:1", "192.0.2.1", "[2001:db8::1]:862", "2001:db8::1", "[::1]", "[h]:1", "h:0", "h:65536", ":1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, err := splitPeer(s)
		if err != nil {
			return
		}
		if host == "" || port == 0 {
			t.Fatalf("%q is host %q and port %d", s, host, port)
		}
		if strings.ContainsAny(host, "[]") {
			return // no name, which whoever looks it up is told
		}
		written := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if h, p, err := splitPeer(written); err != nil || h != host || p != port {
			t.Errorf("%q is %q and %d, and %q is %q and %d, %v", s, host, port, written, h, p, err)
		}
	})
}
