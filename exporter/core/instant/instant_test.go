package instant

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

func TestZeroMeansNoStampEverywhere(t *testing.T) {
	var zero Time
	if !zero.IsZero() || !zero.Time().IsZero() || zero.String() != "none" {
		t.Errorf("zero: %v %v %q", zero.IsZero(), zero.Time(), zero.String())
	}
	if got := FromTime(time.Time{}); got != 0 {
		t.Errorf("the zero time.Time became %d", got)
	}
}

func TestConversionKeepsEveryNanosecond(t *testing.T) {
	all := []int64{math.MinInt64, -1, 1, math.MaxInt64}
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	for range 1000 {
		all = append(all, int64(rng.Uint64()|1)) // 0 means no timestamp
	}
	for _, ns := range all {
		if got := FromTime(Time(ns).Time()); got != Time(ns) {
			t.Errorf("%d became %d", ns, got)
		}
	}
}

func TestConversionDropsZoneAndMonotonicReading(t *testing.T) {
	seoul := time.FixedZone("KST", 9*3600)
	at := time.Date(2010, 6, 1, 9, 0, 0, 123456789, seoul)
	if got := FromTime(at); got.String() != "2010-06-01T00:00:00.123456789Z" {
		t.Errorf("%s became %s", at, got)
	}
	now := time.Now()
	if got := FromTime(now).Time(); !got.Equal(now) || got.Location() != time.UTC {
		t.Errorf("%s became %s", now, got)
	}
}

func TestFromUnixIsTheKernelsTimespec(t *testing.T) {
	if got, want := FromUnix(1_700_000_000, 999_999_999), Time(1_700_000_000_999_999_999); got != want {
		t.Errorf("%d, want %d", got, want)
	}
	if got, want := FromUnix(-1, 1), Time(-999_999_999); got != want {
		t.Errorf("before 1970: %d, want %d", got, want)
	}
}

func TestDifferenceIsSigned(t *testing.T) {
	a := FromUnix(100, 0)
	b := a.Add(-3 * time.Millisecond)
	if got := b.Sub(a); got != -3*time.Millisecond {
		t.Errorf("%v", got)
	}
	if got := a.Sub(b); got != 3*time.Millisecond {
		t.Errorf("%v", got)
	}
}

func TestNowIsBetweenTwoReadingsOfTheSystem(t *testing.T) {
	before := time.Now().UnixNano()
	now := int64(Now())
	after := time.Now().UnixNano()
	if now < before || now > after {
		t.Errorf("%d is not within %d..%d", now, before, after)
	}
}
