package train

import (
	"fmt"
	"testing"
)

// path answers as a path of that MTU does; it counts what it was asked.
type path struct {
	mtu, asked int
}

func (p *path) ask(size int) answer {
	p.asked++
	if size <= p.mtu {
		return passed
	}
	return tooLarge
}

func (p *path) search(s *mtuSearch) (int, bool) {
	for size, ok := s.next(); ok; size, ok = s.next() {
		s.observe(size, p.ask(size))
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
			if p.asked > 18 {
				t.Fatalf("IPv6 %v: %d sizes asked for to find %d", ipv6, p.asked, mtu)
			}
		}
	}
}

func TestSearchAsksForTheUsualFirst(t *testing.T) {
	for _, c := range []struct{ mtu, asks int }{{1500, 3}, {9000, 4}, {1492, 8}} {
		t.Run(fmt.Sprint(c.mtu), func(t *testing.T) {
			p := path{mtu: c.mtu}
			p.search(newMTUSearch(false, 9000))
			if p.asked > c.asks {
				t.Errorf("%d sizes asked for, want %d at the most", p.asked, c.asks)
			}
		})
	}
}

func TestSearchBeginsWithWhatNearlyEveryPathCarries(t *testing.T) {
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
			t.Errorf("IPv6 %v: found %d where nothing passes", ipv6, got)
		}
	}
}

func TestSearchGivesUpWhenNothingAnswers(t *testing.T) {
	s := newMTUSearch(false, 9000)
	s.observe(1200, passed)
	asked := 0
	for size, ok := s.next(); ok; size, ok = s.next() {
		asked++
		s.observe(size, unclear)
	}
	if _, ok := s.found(); ok || asked != maxUnclear {
		t.Errorf("found %v after %d sizes without an answer, want no MTU after %d", ok, asked, maxUnclear)
	}
}

func TestOneSilenceDoesNotChangeWhatIsFound(t *testing.T) {
	p, s := path{mtu: 1420}, newMTUSearch(false, 9000)
	for size, ok := s.next(); ok; size, ok = s.next() {
		s.observe(size, unclear)
		s.observe(size, p.ask(size))
	}
	if got, ok := s.found(); !ok || got != 1420 {
		t.Errorf("found %d, %v, want 1420", got, ok)
	}
}

func TestSearchEndsAtTheTop(t *testing.T) {
	for _, top := range []int{1280, 1400, 1500} {
		p := path{mtu: 9000}
		if got, ok := p.search(newMTUSearch(false, top)); !ok || got != top {
			t.Errorf("found %d, %v where no more than %d is asked for", got, ok, top)
		}
	}
}
