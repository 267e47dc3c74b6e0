package train

import (
	"fmt"
	"testing"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// path replies like a path of that MTU, and counts the requests.
type path struct {
	mtu, probed int
}

func (p *path) probe(size int) probeResult {
	p.probed++
	if size <= p.mtu {
		return passed
	}
	return tooLarge
}

func (p *path) search(s *mtuSearch) (int, bool) {
	for size, ok := s.next(); ok; size, ok = s.next() {
		s.observe(size, p.probe(size))
	}
	return s.found()
}

func TestSearchFindsEveryMTU(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		floor := newMTUSearch(ipv6, 9000).floor
		for mtu := floor; mtu <= 9000; mtu++ {
			p := path{mtu: mtu}
			if got, ok := p.search(newMTUSearch(ipv6, 9000)); !ok || got != mtu {
				t.Fatalf("IPv6 %v: the path's MTU is %d, found %d, %v", ipv6, mtu, got, ok)
			}
			if p.probed > 18 {
				t.Fatalf("IPv6 %v: %d sizes probed to find %d", ipv6, p.probed, mtu)
			}
		}
	}
}

func TestSearchProbesCommonSizesFirst(t *testing.T) {
	for _, c := range []struct{ mtu, asks int }{{1500, 3}, {9000, 4}, {1492, 8}} {
		t.Run(fmt.Sprint(c.mtu), func(t *testing.T) {
			p := path{mtu: c.mtu}
			p.search(newMTUSearch(false, 9000))
			if p.probed > c.asks {
				t.Errorf("%d sizes probed, want at most %d", p.probed, c.asks)
			}
		})
	}
}

func TestSearchBeginsWithTheBaseSize(t *testing.T) {
	for ipv6, want := range map[bool]int{false: 1200, true: 1280} {
		if got, ok := newMTUSearch(ipv6, 9000).next(); !ok || got != want {
			t.Errorf("IPv6 %v: begins with %d, want %d", ipv6, got, want)
		}
	}
}

func TestBlackHoleOfTheBaseSizeIsSearchedBelow(t *testing.T) {
	p := path{mtu: 700}
	if got, ok := p.search(newMTUSearch(false, 9000)); !ok || got != 700 {
		t.Errorf("found %d, %v behind a black hole, want 700", got, ok)
	}
	for _, ipv6 := range []bool{false, true} {
		p = path{mtu: 400}
		if got, ok := p.search(newMTUSearch(ipv6, 9000)); ok {
			t.Errorf("IPv6 %v: found %d on a path that passes nothing", ipv6, got)
		}
	}
}

func TestSearchEndsWithoutReplies(t *testing.T) {
	s := newMTUSearch(false, 9000)
	s.observe(1200, passed)
	asked := 0
	for size, ok := s.next(); ok; size, ok = s.next() {
		asked++
		s.observe(size, unclear)
	}
	if _, ok := s.found(); ok || asked != maxUnclear {
		t.Errorf("found %v after %d sizes without a reply, want no MTU after %d", ok, asked, maxUnclear)
	}
}

func TestOneUnclearResultDoesNotChangeTheMTU(t *testing.T) {
	p, s := path{mtu: 1420}, newMTUSearch(false, 9000)
	for size, ok := s.next(); ok; size, ok = s.next() {
		s.observe(size, unclear)
		s.observe(size, p.probe(size))
	}
	if got, ok := s.found(); !ok || got != 1420 {
		t.Errorf("found %d, %v, want 1420", got, ok)
	}
}

func TestSearchEndsAtTheTop(t *testing.T) {
	for _, top := range []int{1280, 1400, 1500} {
		p := path{mtu: 9000}
		if got, ok := p.search(newMTUSearch(false, top)); !ok || got != top {
			t.Errorf("found %d, %v with %d as the largest size probed", got, ok, top)
		}
	}
}

func TestSmallPacketsDistinguishATooLargePacketFromAPathThatIsDown(t *testing.T) {
	for name, c := range map[string]struct {
		simulatedPath *simulatedPath
		want          probeResult
	}{
		"passes":              {&simulatedPath{rate: wibro, mtu: 1500}, passed},
		"too large":           {&simulatedPath{rate: wibro, mtu: 1300}, tooLarge},
		"refused":             {&simulatedPath{rate: wibro, port: 1300}, tooLarge},
		"dead":                {&simulatedPath{rate: wibro, lose: func(int) bool { return true }}, unclear},
		"one of three passes": {&simulatedPath{rate: wibro, lose: func(n int) bool { return n < 4 }}, passed},
	} {
		t.Run(name, func(t *testing.T) {
			c.simulatedPath.stamps = sample.Kernel
			got, err := probeSize(t.Context(), c.simulatedPath.session(), sample.Reverse, 1400, &timeout{})
			if err != nil || got != c.want {
				t.Errorf("result %d, error %v, want %d", got, err, c.want)
			}
		})
	}
}

func TestProbesOfTheMTUKeepTheTokensRate(t *testing.T) {
	const limit = 50_000
	r := &simulatedPath{rate: wibro, stamps: sample.Kernel}
	s := udptraffic.NewSession(r, udptraffic.SessionOptions{Limits: loadcontrol.Limits{BytesPerSecond: limit}})
	if mtu, err := pathMTU(t.Context(), s, sample.Forward, 9000, &timeout{}); err != nil || mtu != 9000 {
		t.Fatalf("path MTU %d, %v, want 9000", mtu, err)
	}
	for _, p := range r.plans {
		if rate, unpaced := p.PeakRate(); rate > limit || unpaced {
			t.Errorf("probes of %d bytes at %.0f bytes/s, want at most %d", p.Segments[0].PayloadBytes, rate, limit)
		}
	}
}

func TestLargeTrainsAreMarkedFragmentedAndCountTheirFragments(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		o := DefaultOptions()
		d, _ := must(t, &simulatedPath{rate: evdo, mtu: 1400, ipv6: ipv6}, o)
		if d.PathMTU != 1400 {
			t.Fatalf("IPv6 %v: path MTU %d, want 1400", ipv6, d.PathMTU)
		}
		for _, z := range d.Sizes {
			if *z.Fragmented != (z.PacketBytes > 1400) {
				t.Errorf("IPv6 %v: %d B: fragmented %v", ipv6, z.PacketBytes, *z.Fragmented)
			}
			near(t, "median", z.Median, evdo, 0.001)
		}
		if z := d.best(); z.PayloadBytes != 1200 {
			t.Errorf("IPv6 %v: trains of %d B represent the path, want the largest unfragmented ones", ipv6, z.PayloadBytes)
		}
	}
}

func TestOnlyTrainsThatNeedItMayBeFragmented(t *testing.T) {
	r := &simulatedPath{rate: evdo, mtu: 1400}
	must(t, r, DefaultOptions())
	for _, p := range r.plans {
		size := p.Segments[0].PayloadBytes + 28
		if isTrain := p.Segments[0].Burst > 1; p.Fragment != (isTrain && size > 1400) {
			t.Errorf("%d B, burst %d: fragmentation allowed: %v", size, p.Segments[0].Burst, p.Fragment)
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
		{1500, 1400, false, 1520}, // 1376 + 104 bytes of data
		{1500, 576, false, 1540},  // 552 + 552 + 376
		{1520, 1400, true, 1480 + 2*48},
	} {
		if got := onTheWire(c.ip, c.mtu, c.ipv6); got != c.want {
			t.Errorf("%d B over an MTU of %d, IPv6 %v: %d bytes, want %d", c.ip, c.mtu, c.ipv6, got, c.want)
		}
	}
}
