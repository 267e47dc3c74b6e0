package option

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/alecthomas/units"
)

// Errors of amounts and rates. A text without a clear unit gets the spellings that it may mean instead.
var (
	errBytes = errors.New("it must be an amount of data, such as 1500B, 64KiB or 10MB")
	errRate  = errors.New("it must be a rate in bits a second above 0, such as 500kbit, 12Mbit or 1Gbit")
	errLarge = fmt.Errorf("it must be at most %s", Rate(maxBits/8))
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

// prefixOf is the prefix of a unit, k, M, G or T, if the unit has nothing else or ends as given; "" otherwise.
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
		case strings.EqualFold(prefix, "t"):
			return "T"
		}
	}
	return ""
}

// thousands is the factor of a decimal prefix.
func thousands(prefix string) float64 { return math.Pow(1000, float64(strings.Index(" kMGT", prefix))) }

// rateMeant is the error of a rate. Bytes are eight bits.
func rateMeant(s string) error {
	number, unit := numberAndUnit(s)
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n <= 0 {
		return errRate
	}
	if unitOf(unit) > 0 {
		return errLarge
	}
	inBytes := strconv.FormatFloat(8*n, 'f', -1, 64)
	if b, err := units.ParseStrictBytes(number + strings.TrimSuffix(unit, "/s")); err == nil && strings.Contains(unit, "iB") {
		return fmt.Errorf("a rate is in bits a second; write %s for this many bytes, or %s%sbit for bits", Rate(b), number, unit[:1])
	}
	if binary, ok := strings.CutSuffix(strings.TrimSuffix(unit, "/s"), "ibit"); ok {
		if b, err := units.ParseStrictBytes(number + binary + "iB"); err == nil {
			return fmt.Errorf("a rate has decimal prefixes; write %s", Rate(b/8))
		}
	}
	bits, asBits, asBytes := prefixOf(unit, "bit", "bps"), prefixOf(unit, ""), prefixOf(unit, "B", "Byte", "byte")
	p := bits + asBits + asBytes
	switch large := n * thousands(p) * 8; {
	case p == "T" || large > 8*maxBits || asBytes != "" && large > maxBits:
		return errLarge
	case bits != "":
		return fmt.Errorf("write %s%sbit", number, p)
	case asBits != "" && large > maxBits:
		return fmt.Errorf("write %s%sbit for bits a second", number, p)
	case asBits != "":
		return fmt.Errorf("write %s%sbit for bits a second, or %s%sbit if %s %sB (bytes) a second are meant", number, p, inBytes, p, number, p)
	case asBytes != "":
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
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return errBytes
	}
	if near := strings.ReplaceAll(s, " ", ""); near != s && new(Bytes).UnmarshalText([]byte(near)) == nil {
		return fmt.Errorf("write %s, without a space", near)
	}
	below, bits := map[string]string{"k": "B", "M": "kB", "G": "MB", "T": "GB"}, strconv.FormatFloat(125*n, 'f', -1, 64)
	if p := prefixOf(unit, ""); p != "" {
		return fmt.Errorf("write %s%sB for bytes, or %s%s if %s %sbit are meant", number, p, bits, below[p], number, p)
	}
	if p := prefixOf(unit, "bit", "b"); p != "" {
		return fmt.Errorf("an amount of data is in bytes; write %s%s for this many bits, or %s%sB for bytes", bits, below[p], number, p)
	}
	return errBytes
}
