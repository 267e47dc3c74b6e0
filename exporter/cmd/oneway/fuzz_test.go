package main

import (
	"net/netip"
	"slices"
	"testing"
)

// FuzzListen: an address parses to itself, and ":port" to that port of both families.
func FuzzListen(f *testing.F) {
	for _, s := range []string{":862", "192.0.2.7:862", "[2001:db8::7]:862", "[fe80::1%eth0]:0", ":65536", "host:862", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		all, err := parseListen(s)
		switch {
		case err != nil:
		case len(all) == 1:
			if again, err := parseListen(all[0].String()); err != nil || !slices.Equal(again, all) {
				t.Errorf("%q is %v, and that is %v, %v", s, all, again, err)
			}
		case len(all) != 2 || all[0].Addr() != netip.IPv4Unspecified() || all[1].Addr() != netip.IPv6Unspecified() || all[0].Port() != all[1].Port():
			t.Errorf("%q is %v", s, all)
		}
	})
}
