package train

import (
	"testing"
)

func TestLargeTrainsAreMarkedFragmentedAndCountTheirFragments(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		o := DefaultOptions()
		d, _ := must(t, &road{rate: evdo, mtu: 1400, ipv6: ipv6}, o)
		if d.PathMTU != 1400 {
			t.Fatalf("IPv6 %v: path MTU %d, want 1400", ipv6, d.PathMTU)
		}
		for _, z := range d.Sizes {
			if *z.Fragmented != (z.PacketBytes > 1400) {
				t.Errorf("IPv6 %v: %d B fragmented: %v", ipv6, z.PacketBytes, *z.Fragmented)
			}
			near(t, "median", z.Median, evdo, 0.001)
		}
		if z := d.best(); z.PayloadBytes != 1200 {
			t.Errorf("IPv6 %v: trains of %d B stand for the path, want the largest whole ones", ipv6, z.PayloadBytes)
		}
	}
}

func TestOnlyTrainsThatNeedItMayBeFragmented(t *testing.T) {
	r := &road{rate: evdo, mtu: 1400}
	must(t, r, DefaultOptions())
	for _, p := range r.plans {
		size := p.Segments[0].PayloadBytes + 28
		if isTrain := p.Segments[0].Burst > 1; p.Fragment != (isTrain && size > 1400) {
			t.Errorf("%d B, burst %d: may be fragmented: %v", size, p.Segments[0].Burst, p.Fragment)
		}
	}
}

func TestOnTheWireCountsTheHeadersOfFragments(t *testing.T) {
	for _, c := range []struct {
		ip, mtu int
		ipv6    bool
		want    int
	}{
		{1500, 1500, false, 1500},
		{1500, 0, false, 1500},
		{1500, 1400, false, 1520}, // 1376 + 104 octets of data
		{1500, 576, false, 1540},  // 552 + 552 + 376
		{1520, 1400, true, 1480 + 2*48},
	} {
		if got := onTheWire(c.ip, c.mtu, c.ipv6); got != c.want {
			t.Errorf("%d B over an MTU of %d, IPv6 %v: %d octets, want %d", c.ip, c.mtu, c.ipv6, got, c.want)
		}
	}
}
