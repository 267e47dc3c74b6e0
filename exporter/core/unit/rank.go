package unit

import "strings"

// RankPercent is the rank of a quantile (0..1) in percent with the decimal point as an underscore, as names of fields have it: 0.95 is 95,
// and 0.999 is 99_9. It is empty for a rank that is not a decimal number between 0 and 1 in its shortest form.
func RankPercent(rank string) string {
	switch rank {
	case "0":
		return "0"
	case "1":
		return "100"
	}
	digits, found := strings.CutPrefix(rank, "0.")
	if !found || digits == "" || strings.Trim(digits, "0123456789") != "" || strings.HasSuffix(digits, "0") {
		return ""
	}
	digits += strings.Repeat("0", max(0, 2-len(digits)))
	whole, rest := strings.TrimLeft(digits[:2], "0"), digits[2:]
	if whole == "" {
		whole = "0"
	}
	if rest == "" {
		return whole
	}
	return whole + "_" + rest
}
