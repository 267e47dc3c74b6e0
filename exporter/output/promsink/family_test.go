package promsink

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"oneway.example/exporter/core/metric"
	"oneway.example/tests/testseed"
)

// The guess of a place, right or wrong, changes no result.
func TestFamilyKeepsItsOrderWithAnyGuess(t *testing.T) {
	s := newSink(Options{})
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	open := map[[2]string]metric.Series{}
	for range 5000 {
		s.guess = rng.IntN(120)
		labels := [2]string{fmt.Sprint("p", rng.IntN(50)), []string{"forward", "reverse"}[rng.IntN(2)]}
		if one := open[labels]; one != nil {
			one.Close()
			delete(open, labels)
		} else {
			open[labels] = s.Series(testCounter, labels[0], labels[1])
		}
	}
	all := s.families[0].series
	if len(all) != len(open) {
		t.Errorf("%d series are in the family, want %d", len(all), len(open))
	}
	for i := range all[1:] {
		if all[i].compare(all[i+1].labels) >= 0 {
			t.Fatalf("series %d is not before the next one", i)
		}
	}
	for labels := range open {
		s.guess = rng.IntN(120)
		if _, second := s.Series(testCounter, labels[0], labels[1]).(*opener); !second {
			t.Errorf("%v is open twice", labels)
		}
	}
}

func TestScrapeKeepsTheSeriesOfItsBegin(t *testing.T) {
	s := newSink(Options{})
	kept, closed := s.Series(testCounter, "b", "forward"), s.Series(testCounter, "c", "forward")
	closed.Add(3)
	families, scrape := s.begin()
	s.Series(testCounter, "a", "forward")
	closed.Close()
	kept.Add(1)
	for _, one := range families[0] {
		one.read(scrape, func(number float64, _ *histogram) {
			if want := map[string]float64{"b": 0, "c": 3}[one.labels[1].value]; number != want {
				t.Errorf("%s is %v, want %v as at the begin of the scrape", one.labels[1].value, number, want)
			}
		})
	}
	s.scraping.Store(0)
	if len(families[0]) != 2 || len(s.families[0].series) != 2 {
		t.Errorf("the scrape has %d series and the family %d, want 2 and 2", len(families[0]), len(s.families[0].series))
	}
}
