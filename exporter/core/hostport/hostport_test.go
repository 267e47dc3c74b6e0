package hostport

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
)

func TestHostsAreReadWithAndWithoutAPort(t *testing.T) {
	for s, want := range map[string]struct {
		host string
		port uint16
		err  error
	}{
		"host": {"host", 7, nil}, "host:862": {"host", 862, nil}, "192.0.2.1": {"192.0.2.1", 7, nil}, "192.0.2.1:1": {"192.0.2.1", 1, nil},
		"2001:db8::1": {"2001:db8::1", 7, nil}, "2001:db8::100": {"2001:db8::100", 7, nil}, "2001:db8::7:82": {"2001:db8::7:82", 7, nil}, "[2001:db8::7:862]": {"2001:db8::7:862", 7, nil}, "2001:db8::7:862": {"2001:db8::7:862", 7, nil},
		"2001:db8:1:2:3:4:5:8620": {"2001:db8:1:2:3:4:5:8620", 7, nil}, "[2001:db8::1]": {"2001:db8::1", 7, nil}, "[2001:db8::1]:65535": {"2001:db8::1", 65535, nil},
		"fe80::1%eth0": {"fe80::1%eth0", 7, nil}, "[fe80::1%eth0]:9000": {"fe80::1%eth0", 9000, nil},
		"": {"", 0, errHost}, ":1": {"", 0, errHost}, "[]:1": {"", 0, errHost}, "a b": {"", 0, ErrSpace}, "fe80::1%a b": {"", 0, ErrSpace}, "[fe80::1%a b]:1": {"", 0, ErrSpace}, "192.0.2.300": {"", 0, errIPv4}, "192.0.2": {"", 0, errIPv4}, "fe80::1%eth0]:9000": {"", 0, errHost},
		"h:": {"", 0, errPort}, "h:0": {"", 0, errPort}, "h:65536": {"", 0, errPort}, "h:+1": {"", 0, errPort}, "[::1]:": {"", 0, errPort}, "2001:db8::x": {"", 0, errPort},
		"[::1": {"", 0, errBrackets}, "[::1]x": {"", 0, errBrackets}, "[::1]862": {"", 0, errBrackets},
	} {
		if host, port, err := Split(s, 7); host != want.host || port != want.port || !errors.Is(err, want.err) {
			t.Errorf("%q is %q and %d, %v; want %q and %d, %v", s, host, port, err, want.host, want.port, want.err)
		}
	}
}

func TestWhatIsProbablyMeantIsOffered(t *testing.T) {
	for s, want := range map[string]string{
		"2001:db8::7:18620": `an IPv6 address with a port needs brackets; write "[2001:db8::7]:18620"`,
		"http://host:862/x": `it must be a host with an optional port, and no URL; write "host:862"`,
	} {
		if _, _, err := Split(s, 7); err == nil || err.Error() != want {
			t.Errorf("%q: error is %v, want %s", s, err, want)
		}
	}
}

func TestBracketsAreMeantAroundAnAddressBeforeADefaultPort(t *testing.T) {
	for s, want := range map[string]string{
		"2001:db8::7:862": "[2001:db8::7]:862", "2001:db8::7:8620": "[2001:db8::7]:8620", "2001:db8::7:863": "",
		"2001:db8:1:2:3:4:5:862": "", "[2001:db8::7]:862": "", "192.0.2.1:862": "", "host:862": "", "::862": "", "": "",
	} {
		if got := BracketsMeant(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}

// FuzzSplit: an accepted text has a host and a port, and means the same when it is written with both.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"host", "host:1", "192.0.2.1", "[2001:db8::1]:8620", "2001:db8::1", "[::1]", "[fe80::1%eth0]:8620", "[fe80::1%eth0]", "[h]:1", "h:0", "h:65536", ":1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, err := Split(s, 7)
		if err != nil {
			return
		}
		if host == "" || port == 0 || strings.ContainsAny(host, "[]") {
			t.Fatalf("%q is host %q and port %d", s, host, port)
		}
		if inside, _, ok := strings.Cut(strings.TrimPrefix(s, "["), "]:"); ok && s[0] == '[' && host != inside {
			t.Errorf("%q is host %q", s, host)
		}
		written := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if h, p, err := Split(written, 9); err != nil || h != host || p != port {
			t.Errorf("%q is %q and %d, and %q is %q and %d, %v", s, host, port, written, h, p, err)
		}
	})
}
