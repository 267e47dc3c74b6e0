package history

import (
	"math/rand/v2"
	"testing"
)

// year is a year of hourly samples of a path.
func year() []Sample {
	m := generator{days: 365, level: 20, hourSD: 0.05, hourRho: 0.5, daySD: 0.04, dayRho: 0.4, tailed: true, outlier: 0.01, gaps: 0.02}
	return m.samples(rand.New(rand.NewPCG(1, 1)))
}

// Each benchmark is one result of a year of hourly samples of a path; all of them together are what a path costs.
func BenchmarkHoursOfDay(b *testing.B) {
	s := year()
	for b.Loop() {
		HoursOfDay(s, Options{})
	}
}

func BenchmarkTrend(b *testing.B) {
	s := year()
	for b.Loop() {
		TrendOf(s, Options{})
	}
}

func BenchmarkChanges(b *testing.B) {
	s := year()
	for b.Loop() {
		Changes(s)
	}
}

func BenchmarkCompare(b *testing.B) {
	s := year()
	for b.Loop() {
		Compare(s[:len(s)/2], s[len(s)/2:], Lower, Options{})
	}
}

func BenchmarkComparePairs(b *testing.B) {
	s := year()
	for b.Loop() {
		Compare(s, s, Lower, Options{})
	}
}
