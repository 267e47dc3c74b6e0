package option

import "fmt"

// Part is the name of one of n equal parts, such as "a quarter" for 4. n is the constant by which the program divides, so that a
// description and the program have the same default or limit.
func Part(n int) string {
	switch n {
	case 2:
		return "half"
	case 3:
		return "a third"
	case 4:
		return "a quarter"
	case 5:
		return "a fifth"
	case 8:
		return "an eighth"
	case 10:
		return "a tenth"
	}
	return fmt.Sprintf("1/%d", n)
}
