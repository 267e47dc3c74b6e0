package chrony

import (
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
)

// FuzzAddresses: an accepted address can be dialed, and its text is parsed to the same address.
func FuzzAddresses(f *testing.F) {
	for _, s := range []string{"", "unix:///run/chrony/chronyd.sock", "unix://chronyd.sock", "udp://127.0.0.1:323", "udp://[fe80::1%eth0]:323", "udp://host:323", "tcp://::1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		all, err := parseAddresses(s)
		if err != nil {
			return
		}
		for _, a := range all {
			switch _, notPort := netip.ParseAddrPort(a.target); {
			case a.network == "unixgram" && !filepath.IsAbs(a.target), a.network == "udp" && notPort != nil, a.network != "unixgram" && a.network != "udp":
				t.Errorf("%q is parsed as %+v", s, a)
			}
			if again, err := parseAddresses(a.String()); err != nil || !slices.Equal(again, []address{a}) {
				t.Errorf("%q is %+v, printed as %q and read as %+v, %v", s, a, a, again, err)
			}
		}
	})
}
