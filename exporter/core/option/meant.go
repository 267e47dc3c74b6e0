package option

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors of amounts and rates. A text without a clear unit gets the spellings that it may mean instead.
var (
	errBytes = errors.New("it must be an amount of data, such as 1500, 64KiB or 10MB")
	errRate  = errors.New("it must be a rate in bits a second above 0, such as 500kbit, 12Mbit or 1Gbit")
)

// numberAndUnit divides "12 Mbit" into its number and its unit.
func numberAndUnit(s string) (number, unit string) {
	s = strings.TrimSpace(s)
	digits := strings.IndexFunc(s, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
	if digits < 0 {
		return s, ""
	}
	return s[:digits], strings.TrimSpace(s[digits:])
}

// prefixOf is the prefix of a unit, k, M or G, if the unit has nothing else or ends as given; "" otherwise.
func prefixOf(unit string, ends ...string) string {
	unit = strings.TrimSuffix(unit, "/s")
	for _, end := range ends {
		switch prefix, ok := strings.CutSuffix(unit, end); {
		case !ok:
		case prefix == "k" || prefix == "K":
			return "k"
		case strings.EqualFold(prefix, "m"):
			return "M"
		case strings.EqualFold(prefix, "g"):
			return "G"
		}
	}
	return ""
}

// rateMeant is the error of a rate. Bytes are eight bits.
func rateMeant(s string) error {
	number, unit := numberAndUnit(s)
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n <= 0 {
		return errRate
	}
	inBytes := strconv.FormatFloat(8*n, 'f', -1, 64)
	if p := prefixOf(unit, ""); p != "" {
		return fmt.Errorf("write %s%sbit for bits a second, or %s%sbit if %s %sB (bytes) a second are meant", number, p, inBytes, p, number, p)
	}
	if p := prefixOf(unit, "B", "Byte", "byte", "iB"); p != "" {
		return fmt.Errorf("a rate is in bits a second; write %s%sbit for this many bytes, or %s%sbit for bits", inBytes, p, number, p)
	}
	if unit == "" {
		return unitMissing(number, "bit", "kbit", "Mbit")
	}
	return errRate
}

// unitMissing is the error of a number that needs one of these units.
func unitMissing(number, small, medium, large string) error {
	return fmt.Errorf("it has no unit; write %s%s, %s%s or %s%s", number, small, number, medium, number, large)
}

// amountMeant is the error of an amount of data. A bit is an eighth of a byte: 1 Mbit is 125 kB.
func amountMeant(s string) error {
	number, unit := numberAndUnit(s)
	n, err := strconv.ParseUint(number, 10, 40)
	if err != nil {
		return errBytes
	}
	below := map[string]string{"k": "B", "M": "kB", "G": "MB"}
	if p := prefixOf(unit, ""); p != "" {
		return fmt.Errorf("write %d%sB for bytes, or %d%s if %d %sbit are meant", n, p, 125*n, below[p], n, p)
	}
	if p := prefixOf(unit, "bit", "b"); p != "" {
		return fmt.Errorf("an amount of data is in bytes; write %d%s for this many bits, or %d%sB for bytes", 125*n, below[p], n, p)
	}
	return errBytes
}
