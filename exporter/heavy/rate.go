package heavy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"oneway.example/exporter/sample"
)

// Rate is IP octets a second, headers included and no link layer (RFC 9097 section 5.3).
// It is written in bits a second: "2.5Mbit", "64kbit/s", "1Gb/s".
type Rate float64

// PerDirection is a rate for each direction; zero where there is none.
type PerDirection struct {
	Forward Rate `yaml:"forward" json:"forward"`
	Reverse Rate `yaml:"reverse" json:"reverse"`
}

// Of is that of a direction.
func (p PerDirection) Of(d sample.Direction) Rate {
	if d == sample.Forward {
		return p.Forward
	}
	return p.Reverse
}

var errRate = errors.New("it must be a rate in bits a second, such as 500kbit, 12Mbit or 1Gbit")

// UnmarshalText reads a number and its unit.
func (r *Rate) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	digits := strings.IndexFunc(s, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
	if digits <= 0 {
		return errRate
	}
	number, err := strconv.ParseFloat(s[:digits], 64)
	worth := unitOf(strings.TrimSpace(s[digits:]))
	if err != nil || worth == 0 || number <= 0 || number*worth > maxBits {
		return errRate
	}
	*r = Rate(number * worth / 8)
	return nil
}

// maxBits a second: more than any interface has.
const maxBits = 1e12

// unitOf is what one of a unit is worth in bits a second; 0 for no unit of a rate. KB and
// the like, octets, are refused rather than misread.
func unitOf(unit string) float64 {
	unit = strings.TrimSuffix(unit, "/s")
	for _, suffix := range []string{"bit", "bps", "b"} {
		if prefix, ok := strings.CutSuffix(unit, suffix); ok {
			switch prefix {
			case "":
				return 1
			case "k", "K":
				return 1e3
			case "M":
				return 1e6
			case "G":
				return 1e9
			}
			return 0
		}
	}
	return 0
}

// String is what UnmarshalText reads, such as "2.5Mbit".
func (r Rate) String() string {
	bits, prefix := r.scaled()
	return strconv.FormatFloat(bits, 'g', 6, 64) + prefix + "bit"
}

// Words is a rate for print: "2.501 Mb/s".
func (r Rate) Words() string {
	bits, prefix := r.scaled()
	return fmt.Sprintf("%.4g %sb/s", bits, prefix)
}

// scaled is the rate in the largest unit in which it is at least one.
func (r Rate) scaled() (bits float64, prefix string) {
	bits = float64(r) * 8
	for _, p := range []string{"k", "M", "G"} {
		if bits < 1000 {
			break
		}
		bits, prefix = bits/1000, p
	}
	return bits, prefix
}
