package unit

import "fmt"

// Counted is a number and the words after it that agree with it: one for 1, and many for each other number. "1 packet has" and
// "2 packets have".
func Counted[N ~int | ~int64 | ~uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
