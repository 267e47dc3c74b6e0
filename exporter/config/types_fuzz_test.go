package config

import (
	"math"
	"testing"

	"oneway.example/exporter/hostport"
)

// FuzzTypes: what is taken is within its bounds, and an address is read again as it is printed.
func FuzzTypes(f *testing.F) {
	for _, s := range []string{":862", "192.0.2.1:862", "[fe80::1%eth0]:862", "[::ffff:192.0.2.1]:1", "1500", "64KiB", "10MB", "9223372036854775808", "5%", "1e-3", "NaN", "-0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var l, again Listen
		if l.UnmarshalText([]byte(s)) == nil {
			if err := again.UnmarshalText([]byte(l.String())); err != nil || again != l {
				t.Errorf("%q is %v, and that is %v, %v", s, l, again, err)
			}
		}
		var b Bytes
		if err := b.UnmarshalText([]byte(s)); err == nil && b < 0 {
			t.Errorf("%q is %d octets", s, b)
		}
		var r Ratio
		if err := r.UnmarshalText([]byte(s)); err == nil && !(r >= 0 && r <= 1) || math.IsNaN(float64(r)) {
			t.Errorf("%q is the ratio %v", s, r)
		}
	})
}

// FuzzPeer: what is taken has a host, and its port is one.
func FuzzPeer(f *testing.F) {
	for _, s := range []string{"reflector.example.net:862", "192.0.2.1", "2001:db8::1", "[2001:db8::1]:862", "[::1", "[a]b", "h:", "h:+1", "h:0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if wrongPeer(s) != "" {
			return
		}
		host, _, err := hostport.Split(s, 1)
		if err != nil || host == "" {
			t.Fatalf("%q is host %q, %v", s, host, err)
		}
		if bare := wrongPeer(host); bare != "" {
			t.Errorf("%q is right, and its host %q is wrong: %s", s, host, bare)
		}
	})
}
