package target

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

func TestWrongOptionIsNamedWithWhatWouldBeRight(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"": func(*Options) {},
		`family is "ipv5"; it must be any, ipv4 or ipv6`:                                                                    func(o *Options) { o.Family = "ipv5" },
		`local is "here"; it must be an IP address of this host`:                                                            func(o *Options) { o.Local = "here" },
		`local is ::1, which is not of family ipv4`:                                                                         func(o *Options) { o.Local, o.Family = "::1", "ipv4" },
		`local is 192.0.2.1, which is not of family ipv6`:                                                                   func(o *Options) { o.Local, o.Family = "::ffff:192.0.2.1", "ipv6" },
		`local is ::, which is no address of a host; leave it out for the kernel's choice`:                                  func(o *Options) { o.Local = "::" },
		`local is 224.0.0.1; this is a multicast address; write the address of one host, such as 192.0.2.1`:                 func(o *Options) { o.Local = "224.0.0.1" },
		`local is fe80::1; a link-local address needs the interface of this host; write it after a %, such as fe80::1%eth0`: func(o *Options) { o.Local = "fe80::1" },
		`resolve_interval is 1ms; it must be between 1s and 24h0m0s`:                                                        func(o *Options) { o.ResolveInterval = time.Millisecond },
		`resolve_interval is 48h0m0s; it must be between 1s and 24h0m0s`:                                                    func(o *Options) { o.ResolveInterval = 48 * time.Hour },
		`interface is "eth0/1"; it must be the name of a network interface or VRF of this host, such as eth0`:               func(o *Options) { o.Interface = "eth0/1" },
		`interface is "0123456789abcdef"; it must be the name of a network interface or VRF of this host, such as eth0`:     func(o *Options) { o.Interface = "0123456789abcdef" },
	} {
		o := option.Defaults[Options]()
		change(&o)
		switch err := option.Check(&o); {
		case want == "" && err != nil, want != "" && (err == nil || err.Error() != want):
			t.Errorf("%v, want %q", err, want)
		case want != "":
			if _, ok := errors.AsType[*option.Error](err); !ok {
				t.Errorf("%T, want an *option.Error", err)
			}
		}
	}
}

func TestAddressesFitTheFamilyAndTheLocalAddress(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("2001:db8::9")
	for _, c := range []struct {
		family, local string
		fits          [2]bool
		from          [2]string
	}{
		{"any", "", [2]bool{true, true}, [2]string{"0.0.0.0", "::"}},
		{"ipv4", "", [2]bool{true, false}, [2]string{"0.0.0.0", ""}},
		{"ipv6", "", [2]bool{false, true}, [2]string{"", "::"}},
		{"any", "192.0.2.1", [2]bool{true, false}, [2]string{"192.0.2.1", ""}},
		{"any", "2001:db8::1", [2]bool{false, true}, [2]string{"", "2001:db8::1"}},
	} {
		a := Addressing{Family: c.family, Local: c.local}
		if err := option.Check(&a); err != nil {
			t.Fatal(err)
		}
		for i, peer := range []netip.Addr{four, six} {
			if a.Fits(peer) != c.fits[i] || c.fits[i] && a.From(peer).String() != c.from[i] {
				t.Errorf("%+v: %v fits: %v, from %v", c, peer, a.Fits(peer), a.From(peer))
			}
		}
	}
}

// FuzzHost: an accepted peer has a port and a host that is accepted on its own.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"reflector.example.net:862", "192.0.2.1", "2001:db8::1", "[2001:db8::1]:862", "[fe80::1%eth0]:862", "[::1", "[a]b", "h:", "h:+1", "h:0", "http://h/", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, err := Host(s, 7)
		if err != nil {
			if wrong, ok := errors.AsType[*option.Error](err); !ok || wrong.Key != probe.PeerKey || !strings.HasPrefix(wrong.Problem, "is ") {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if host == "" || port == 0 {
			t.Fatalf("%q is host %q, port %d", s, host, port)
		}
		if again, missing, err := Host(host, 9); err != nil || again != host || missing != 9 {
			t.Errorf("%q is right, and its host %q is %q, %d, %v", s, host, again, missing, err)
		}
	})
}
