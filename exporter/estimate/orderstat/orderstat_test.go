package orderstat

import (
	"math"
	"testing"
	"testing/quick"
)

// A quantile is the smallest of the values that a share of at least q does not exceed.
func TestQuantileIsTheSmallestValueThatTheShareDoesNotExceed(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 20, 100, 1000} {
		values := make([]int, n)
		for i := range values {
			values[i] = i + 1
		}
		for percent := 1; percent <= 100; percent++ {
			got := Quantile(values, float64(percent)/100)
			if 100*got < percent*n || 100*(got-1) >= percent*n {
				t.Errorf("quantile %d %% of 1 to %d: got %d", percent, n, got)
			}
		}
		if first, last := Quantile(values, 0), Quantile(values, 1); first != 1 || last != n {
			t.Errorf("quantiles 0 and 1 of 1 to %d: got %d and %d", n, first, last)
		}
	}
	if v := Quantile([]int(nil), 0.5); v != 0 {
		t.Errorf("quantile of no values: got %d, want 0", v)
	}
}

func TestMedianIsHalfwayBetweenTheTwoInTheMiddle(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{1, 2}, 1.5}, {[]float64{1, 2, 9}, 2}} {
		if got := Median(c.of); got != c.want {
			t.Errorf("median of %v: got %v, want %v", c.of, got, c.want)
		}
	}
}

// Lost packets are later than all others; the known delays of half of the arrived packets stand for all of them.
func TestQuantileOfArrivedCountsAllThatArrived(t *testing.T) {
	known := make([]int, 20)
	for i := range known {
		known[i] = i + 1
	}
	for _, c := range []struct {
		arrived, lost int
		q             float64
		want          int
	}{{20, 0, 0.5, 10}, {40, 0, 0.5, 10}, {40, 10, 0.5, 13}, {20, 20, 0.5, 20}, {40, 10, 0.95, 0}, {41, 0, 0.5, 0}, {80, 20, 0.5, 0}, {20, 21, 0.5, 0}, {0, 1, 0.5, 0}} {
		if got, ok := OfArrived(known, c.arrived, c.lost, c.q); got != c.want || ok != (c.want > 0) {
			t.Errorf("%+v: %d, %v", c, got, ok)
		}
	}
	if _, ok := OfArrived([]int(nil), 10, 0, 0.5); ok {
		t.Error("no known delay has a median")
	}
}

func TestMedianOfAllCountsTheLargerOnes(t *testing.T) {
	for _, c := range []struct {
		values []float64
		larger int
		want   float64
	}{{[]float64{3, 1, 2}, 0, 2}, {[]float64{3, 1, 2}, 1, 2.5}, {[]float64{3, 1, 2}, 2, 3}, {[]float64{3, 1, 2}, 3, 0}, {[]float64{1}, 2, 0}, {nil, 0, 0}, {nil, 1, 0}} {
		if got, ok := MedianOfAll(c.values, c.larger); got != c.want || ok != (c.want > 0) {
			t.Errorf("%+v: %v, %v", c, got, ok)
		}
	}
}

func TestSortedDoesNotChangeItsArgument(t *testing.T) {
	if err := quick.Check(func(v []int32) bool {
		before := append([]int32(nil), v...)
		s := Sorted(v)
		for i := range v {
			if v[i] != before[i] || i > 0 && s[i-1] > s[i] {
				return false
			}
		}
		return len(s) == len(v)
	}, nil); err != nil {
		t.Error(err)
	}
}

// The quantile of counts is that of the values, with an error of at most the width of a bin.
func TestCountsKeepQuantiles(t *testing.T) {
	const width = 0.25
	c, values := NewHistogram(width, 100), []float64(nil)
	for i := range 1000 {
		v := float64(i*i%977) / 50
		c.Add(v)
		values = append(values, v)
	}
	values = Sorted(values)
	for _, q := range []float64{0, 0.05, 0.5, 0.95, 1} {
		if off := Quantile(values, q) - c.Quantile(q); off < 0 || off >= width {
			t.Errorf("quantile %v: got %v, want %v, with an error below %v", q, c.Quantile(q), Quantile(values, q), width)
		}
	}
	below := 0
	for _, v := range values {
		if v < 10 {
			below++
		}
	}
	if got := c.Below(10); got != below {
		t.Errorf("below 10: got %d, want %d", got, below)
	}
	if c.Below(math.MaxFloat64) != 1000 {
		t.Errorf("below the largest number: got %d, want 1000", c.Below(math.MaxFloat64))
	}
	if c.Add(math.MaxFloat64); c.Quantile(1) != 99*width || c.N != 1001 {
		t.Errorf("a value beyond the last bin: quantile 1 is %v, %d in all", c.Quantile(1), c.N)
	}
}

func TestSampleOfMillionsIsEvenlySpaced(t *testing.T) {
	const n = 1 << 22
	for i, v := range Sample(n, func(i int) int { return i }) {
		if v != i*(n/4096) {
			t.Fatalf("sample %d is value %d, want %d", i, v, i*(n/4096))
		}
	}
}
