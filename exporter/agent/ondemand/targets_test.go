package ondemand

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func allowed(t testing.TB, list ...string) Targets {
	t.Helper()
	all, err := NewTargets(list, []int{862, 8620})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOnlyListedTargetsAreAllowed(t *testing.T) {
	list := allowed(t, "*.Example.net", "reflector.example.org.", "192.0.2.0/24", "2001:db8::/32", "198.51.100.7")
	for target, want := range map[string]Kind{
		"a.example.net": "", "A.B.EXAMPLE.NET.:8620": "", "reflector.example.org": "", "192.0.2.9:862": "", "[2001:db8::1]:8620": "", "2001:db8::1": "", "198.51.100.7": "", "::ffff:192.0.2.9": "",
		"example.net": NotAllowed, "xexample.net": NotAllowed, "a.example.net.evil.test": NotAllowed, "b.reflector.example.org": NotAllowed,
		"192.0.3.1": NotAllowed, "2001:db9::1": NotAllowed, "198.51.100.8": NotAllowed, "192.0.2.9:53": NotAllowed, "localhost": NotAllowed,
		"0xc0.0.2.9": NotAllowed, "3221225985": NotAllowed,
		"[::]": Malformed, "0.0.0.0": Malformed, "224.0.0.5:862": Malformed, "[ff02::1%eth0]:862": Malformed, "255.255.255.255": Malformed, "fe80::1": Malformed,
		"user@a.example.net": Malformed, "http://a.example.net": Malformed, "a.example.net/x": Malformed, "a.example.net:0": Malformed, "a.example.net:65536": Malformed,
		"fe80::1%eth0": Malformed, "[2001:db8::1%a]:862": Malformed, "": Malformed, "a b": Malformed, "a.example.net\n": Malformed, "*.example.net": Malformed,
		strings.Repeat("a", 300) + ".example.net": Malformed, "[192.0.2.9": Malformed, ".example.net": Malformed, "a..example.net": Malformed,
	} {
		_, err := list.parse(target, 862)
		got := Kind("")
		if r, ok := errors.AsType[*Refused](err); ok {
			got = r.Kind
		}
		if got != want || (err == nil) != (want == "") {
			t.Errorf("%q: %v, want %q", target, err, want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%q: the refusal %q has more than one line", target, err)
		}
	}
}

// The networks of this host and its neighbors are never a part of a larger one: a name that somebody else controls must
// not lead there.
func TestLocalAddressesNeedANetworkOfTheirOwn(t *testing.T) {
	everything, local := allowed(t, "0.0.0.0/0", "::/0"), allowed(t, "127.0.0.0/8", "169.254.0.0/16", "::1", "192.0.0.0/2", "255.255.255.254/31", "0.0.0.0/31", "::/127")
	for text, want := range map[string][2]bool{
		"192.0.2.1": {true, true}, "2001:db8::1": {true, false},
		"127.0.0.1": {false, true}, "::1": {false, true}, "169.254.169.254": {false, true}, "fe80::1": {},
		"0.0.0.0": {}, "::": {}, "224.0.0.1": {}, "ff02::1": {}, "255.255.255.255": {},
	} {
		a := netip.MustParseAddr(text)
		if got := [2]bool{everything.contains(a), local.contains(a)}; got != want {
			t.Errorf("%s: %v in (everything, local networks), want %v", a, got, want)
		}
	}
}

func TestAllowListStatesTheExpectation(t *testing.T) {
	for _, c := range []struct {
		list []string
		port int
		want string
	}{
		{[]string{"a.example.net"}, 862, "targets has names but no address or network; add the networks of the addresses that the names may have: whoever controls a name chooses its address"},
		{[]string{"192.0.2.1/24"}, 862, `targets[0] is "192.0.2.1/24"; it has bits beyond its length; write 192.0.2.0/24`},
		{[]string{"::ffff:192.0.2.1/120"}, 862, `targets[0] is "::ffff:192.0.2.1/120"; write it as an IPv4 network`},
		{[]string{"192.0.2.0/24", "a.*.net"}, 862, `targets[1] is "a.*.net"; it must be a name, "*." and the end of names, an address or a network`},
		{[]string{"192.0.2.1:862"}, 862, `targets[0] is "192.0.2.1:862"; a port does not belong here; list it in ports`},
		{[]string{"*.192.0.2.1"}, 862, `targets[0] is "*.192.0.2.1"; it must be a name, "*." and the end of names, an address or a network`},
		{[]string{"fe80::1%eth0"}, 862, `targets[0] is "fe80::1%eth0"; a link-local IPv6 address cannot be measured on demand: it needs an interface, which a client may not choose`},
		{[]string{"fe80::/64"}, 862, `targets[0] is "fe80::/64"; a link-local IPv6 address cannot be measured on demand: it needs an interface, which a client may not choose`},
		{[]string{"2001:db8::1%eth0"}, 862, `targets[0] is "2001:db8::1%eth0"; only a link-local address has an interface; write 2001:db8::1`},
		{[]string{"224.0.0.0/4"}, 862, `targets[0] is "224.0.0.0/4"; multicast addresses cannot be measured`},
		{[]string{"255.255.255.255"}, 862, `targets[0] is "255.255.255.255"; this is a broadcast address; write the address of one host, such as 192.0.2.1`},
		{[]string{"::"}, 862, `targets[0] is "::"; this address means no host; write the address of the host, such as 192.0.2.1 (127.0.0.1 or ::1 is this host)`},
		{[]string{"192.0.2.1"}, 70000, "ports[0] is 70000; it must be between 1 and 65535"},
	} {
		if _, err := NewTargets(c.list, []int{c.port}); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v\nwant %s", c.list, err, c.want)
		}
	}
}

// FuzzTarget: nothing that is accepted is outside the list, and no text makes it fail.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"a.example.net", "192.0.2.1:862", "[2001:db8::1]:862", "fe80::1%eth0", "u@h", "::ffff:192.0.2.1"} {
		f.Add(s)
	}
	list := allowed(f, "*.example.net", "192.0.2.0/24", "2001:db8::/32")
	f.Fuzz(func(t *testing.T, given string) {
		h, err := list.parse(given, 862)
		if err != nil {
			return
		}
		if h.name == "" && !list.contains(h.addr) || h.name != "" && !strings.HasSuffix(h.name, ".example.net") || h.port != 862 && h.port != 8620 {
			t.Errorf("%q is accepted as %+v", given, h)
		}
	})
}
