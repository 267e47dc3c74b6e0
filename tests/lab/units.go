package lab

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A unit is what may follow a number, and what one of it is worth.
type unit struct {
	name  string
	worth float64
}

// The units of each kind, the recommended spelling first. Decimal prefixes are
// powers of 1000 (1 KB = 1000 bytes, as in the papers), KiB and MiB of 1024.
// Case matters where it changes the meaning: kb/s are bits, KB are bytes.
func rateUnits() []unit {
	return []unit{
		{"bit", 1},
		{"kbit", 1e3},
		{"Mbit", 1e6},
		{"Gbit", 1e9},
		{"Kbit", 1e3},
		{"mbit", 1e6},
		{"gbit", 1e9},
		{"bit/s", 1},
		{"kbit/s", 1e3},
		{"Mbit/s", 1e6},
		{"Gbit/s", 1e9},
		{"b/s", 1},
		{"kb/s", 1e3},
		{"Mb/s", 1e6},
		{"Gb/s", 1e9},
		{"bps", 1},
		{"kbps", 1e3},
		{"Kbps", 1e3},
		{"Mbps", 1e6},
		{"Gbps", 1e9},
	}
}

func durationUnits() []unit {
	return []unit{
		{"ns", 1},
		{"us", 1e3},
		{"ms", 1e6},
		{"s", 1e9},
		{"\u00b5s", 1e3},
		{"\u03bcs", 1e3}, // micro sign and the Greek letter
	}
}

func sizeUnits() []unit {
	return []unit{
		{"B", 1},
		{"KB", 1e3},
		{"MB", 1e6},
		{"KiB", 1 << 10},
		{"MiB", 1 << 20},
		{"kB", 1e3},
		{"GB", 1e9},
		{"GiB", 1 << 30},
	}
}

func percentUnits() []unit { return []unit{{"%", 0.01}} }

// quantity reads a number and its unit; spaces between them are allowed. A
// plain 0 needs no unit.
func quantity(s string, units []unit) (float64, bool) {
	s = strings.TrimSpace(s)
	digits := len(s)
	if i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); i >= 0 {
		digits = i
	}
	number, err := strconv.ParseFloat(s[:digits], 64)
	if err != nil || math.IsInf(number, 0) {
		return 0, false
	}
	name := strings.TrimSpace(s[digits:])
	if name == "" {
		return 0, number == 0
	}
	for _, u := range units {
		if u.name == name {
			// Percentages are divided, so that 7% is the double next to 0.07.
			if u.worth < 1 {
				return number / (1 / u.worth), true
			}
			return number * u.worth, true
		}
	}
	return 0, false
}

func parseRate(s string) (int64, error) {
	if s == "unlimited" {
		return 0, nil
	}
	v, ok := quantity(s, rateUnits())
	if !ok || v < 1 || v > 1e12 {
		return 0, fmt.Errorf("%q is not a rate, want a number above 0 and bit, kbit, Mbit or Gbit (per second), such as 2.5Mbit, or unlimited", s)
	}
	return int64(math.Round(v)), nil
}

func parseDuration(s string) (time.Duration, error) {
	v, ok := quantity(s, durationUnits())
	if !ok || v > 1e15 {
		return 0, fmt.Errorf("%q is not a duration, want a number and us, ms or s, such as 30ms", s)
	}
	return time.Duration(math.Round(v)), nil
}

func parseSize(s string) (int, error) {
	v, ok := quantity(s, sizeUnits())
	if !ok || v > 1e12 {
		return 0, fmt.Errorf("%q is not a size, want a number and B, KB (1000 bytes), MB, KiB (1024 bytes) or MiB, such as 110KB", s)
	}
	return int(math.Round(v)), nil
}

func parsePercentage(s string) (float64, error) {
	v, ok := quantity(s, percentUnits())
	if !ok || v > 1 {
		return 0, fmt.Errorf("%q is not a percentage, want 0%% to 100%%, such as 1.5%%", s)
	}
	return v, nil
}
