package option

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/alecthomas/units"

	"oneway.example/exporter/core/sample"
)

// Bytes is an amount of data, written as "1500", "64KiB" or "10MB".
type Bytes int64

// UnmarshalText reads a whole number with an optional unit.
func (b *Bytes) UnmarshalText(text []byte) error {
	s := string(text)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		*b = Bytes(n)
		return nil
	}
	n, err := units.ParseStrictBytes(s)
	if err != nil || n < 0 {
		return amountMeant(s)
	}
	*b = Bytes(n)
	return nil
}

// BytesWithUnit reads an amount of data that needs a unit unless it is 0, as a Rate does.
func BytesWithUnit(text string) (b Bytes, err error) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 {
		return 0, unitMissing(text, "B", "kB", "MB")
	}
	err = b.UnmarshalText([]byte(text))
	return b, err
}

// Pattern matches the texts of UnmarshalText.
func (Bytes) Pattern() string { return `^([0-9]+|([0-9]+(\.[0-9]*)?([kKMGTPE]i?)?B)+)$` }

// Ratio is a share of a whole, 0 to 1, written as "0.05" or "5%".
type Ratio float64

// UnmarshalText reads a ratio or a percentage.
func (r *Ratio) UnmarshalText(text []byte) error {
	number, percent := strings.CutSuffix(string(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || math.IsNaN(v) || v < 0 || v > 1 {
		return errors.New("it must be between 0 and 1, or between 0% and 100%")
	}
	*r = Ratio(v)
	return nil
}

// Pattern matches the texts of UnmarshalText.
func (Ratio) Pattern() string { return `^[0-9.]+([eE][-+]?[0-9]+)?( *%)?$` }

// Rate is in IP bytes per second, header included and no link layer (RFC 9097 section 5.3). Its text form is in bits per
// second: "2.5Mbit", "64kbit/s", "1Gb/s".
type Rate float64

// PerDirection is a rate per direction; zero means no rate.
type PerDirection struct {
	Forward Rate `yaml:"forward" json:"forward"`
	Reverse Rate `yaml:"reverse" json:"reverse"`
}

// Of is the rate of a direction.
func (p PerDirection) Of(d sample.Direction) Rate {
	if d == sample.Forward {
		return p.Forward
	}
	return p.Reverse
}

// UnmarshalText reads a number and its unit.
func (r *Rate) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	digits, unit := numberAndUnit(s)
	number, err := strconv.ParseFloat(digits, 64)
	worth := unitOf(unit)
	if err != nil || worth == 0 || number <= 0 || number*worth > maxBits {
		return rateMeant(s)
	}
	*r = Rate(number * worth / 8)
	return nil
}

// Pattern matches the texts of UnmarshalText.
func (Rate) Pattern() string { return `^ *[0-9.]+ *[kKMG]?(bit|bps|b)(/s)? *$` }

// maxBits is a limit in bits per second above the rate of any interface.
const maxBits = 1e12

// unitOf is the number of bits per second of a unit; 0 for an unknown unit. KB and similar units of bytes are rejected.
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

// String is a text that UnmarshalText accepts, such as "2.5Mbit".
func (r Rate) String() string {
	bits, prefix := r.scaled()
	return strconv.FormatFloat(bits, 'g', 10, 64) + prefix + "bit"
}

// scaled is the rate in the largest unit with a value of at least one.
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
