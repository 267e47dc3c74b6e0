package unit

import "testing"

// TestDifferentAmountsOfDataDiffer: rounding makes no two of them equal.
func TestDifferentAmountsOfDataDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b int64
		x, y string
	}{
		{500e6, 4e9, "500 MB", "4 GB"},
		{500e6, 500e6, "500 MB", "500 MB"},
		{500e6, 500e6 + 1, "500 MB", "500000001 B"},
		{50_000, 50_001, "50 kB", "50001 B"},
		{0, 1, "0 B", "1 B"},
		{3_999_999_999, 4_000_000_000, "3999999999 B", "4 GB"},
	} {
		if x, y := DistinctBytes(c.a, c.b); x != c.x || y != c.y {
			t.Errorf("%d and %d are %s and %s, want %s and %s", c.a, c.b, x, y, c.x, c.y)
		}
	}
}
