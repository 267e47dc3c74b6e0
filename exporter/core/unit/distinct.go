package unit

import "strconv"

// DistinctBytes are two amounts of data. Where rounding would make different ones equal, all digits are shown: "500 MB" and
// "500000001 B".
func DistinctBytes(a, b int64) (x, y string) {
	x, y = Bytes.Format(float64(a)), Bytes.Format(float64(b))
	if a != b && x == y {
		return exactBytes(a), exactBytes(b)
	}
	return x, y
}

// exactBytes is an amount in the largest unit that shows it without rounding.
func exactBytes(n int64) string {
	if short := Bytes.Format(float64(n)); n%1000 == 0 && n < 1e15 {
		s := Bytes.ScaleOf(float64(n))
		if v, err := strconv.ParseFloat(s.Number(float64(n)), 64); err == nil && int64(v/s.Factor+0.5) == n {
			return short
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}
