package control

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

// FuzzPin: a pin is all 256 bits, whatever the signs between its digits, and is read again as the
// responder prints it.
func FuzzPin(f *testing.F) {
	digits := strings.Repeat("0aF9", 16)
	for _, s := range []string{pinPrefix + digits, "SHA256:" + digits, pinPrefix + digits[2:], pinPrefix + "0a:F9:" + digits[4:], digits, "sha256:::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sum, err := parsePin(s)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d octets", len(err.Error()))
			}
			return
		}
		if again, err := parsePin(pinPrefix + hex.EncodeToString(sum[:])); err != nil || again != sum {
			t.Errorf("%q is %x, and that is %x, %v", s, sum, again, err)
		}
		if n := len(strings.ReplaceAll(s, ":", "")); n != len("sha256")+2*len(sum) {
			t.Errorf("%q has %d signs", s, n)
		}
	})
}

// FuzzAddress: a responder's address has a port, and means the same when it is written with it.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"h", "h:1", "192.0.2.1", "2001:db8::1", "[2001:db8::1]:8620", "[::1]", ":1", "h:0", "h:65536", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, err := (&ClientOptions{Address: s}).hostPort()
		if err != nil {
			return
		}
		if n, err := strconv.Atoi(port); host == "" || err != nil || n < 1 || n > 65535 {
			t.Fatalf("%q is host %q and port %q", s, host, port)
		}
		if strings.ContainsAny(host, "[]") {
			return // no name, which whoever looks it up is told
		}
		written := host + ":" + port
		if _, err := netip.ParseAddr(host); strings.Contains(host, ":") || err == nil {
			written = "[" + host + "]:" + port
		}
		if h, p, err := (&ClientOptions{Address: written}).hostPort(); err != nil || h != host || p != port {
			t.Errorf("%q is %q and %q, and %q is %q and %q, %v", s, host, port, written, h, p, err)
		}
	})
}
