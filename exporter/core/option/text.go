package option

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// String is a value as a configuration and a flag have it: "1h30m", "64KiB", "2.5Mbit", "[1, 2]".
func String(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case time.Duration:
		return durationText(v)
	case Bytes:
		return bytesText(int64(v))
	case fmt.Stringer:
		return v.String()
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Slice:
		return "[" + strings.Join(Strings(value), ", ") + "]"
	case reflect.Float64:
		return String(v.Float())
	default:
		return fmt.Sprint(value)
	}
}

// Strings are the values of a list as String has them.
func Strings(list any) (all []string) {
	v := reflect.ValueOf(list)
	for i := range v.Len() {
		all = append(all, String(v.Index(i).Interface()))
	}
	return all
}

// durationText is without the parts that are zero: "1h", not "1h0m0s".
func durationText(d time.Duration) string {
	s := strings.Replace(d.String(), "µ", "u", 1)
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// bytesText is the text with the fewest digits: 64KiB, 2GB, 1410.
func bytesText(n int64) string {
	digits, unit := strconv.FormatInt(n, 10), ""
	for i, u := range []string{"KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB"} {
		factor := int64(1) << (10 * (i + 1))
		if i >= 4 {
			factor = int64(math.Pow10(3 * (i - 3)))
		}
		if fewer := strconv.FormatInt(n/factor, 10); n%factor == 0 && n > 0 && len(fewer) < len(digits) {
			digits, unit = fewer, u
		}
	}
	return digits + unit
}

// Range is the permitted range of the value in words, such as "10ms to 1s"; empty: there is none.
func (d Description) Range() string {
	switch {
	case d.limits != "":
		return d.limits
	case d.low == nil:
		return ""
	case unlimited(d.high):
		text := atLeast(d.low)
		return strings.ToUpper(text[:1]) + text[1:]
	}
	low, high := String(d.low), String(d.high)
	if unit := d.Unit(); unit != "" {
		high += " " + unit
	}
	return low + " to " + high
}

// unlimited reports whether a bound of a number permits all of its type.
func unlimited(high any) bool {
	v := reflect.ValueOf(high)
	return v.CanInt() && v.Int() == 1<<(v.Type().Bits()-1)-1
}

// atLeast is a range without an upper bound in words.
func atLeast(low any) string { return "at least " + String(low) }

// Unit is the unit of a number; empty: its text has the unit, or it has none.
func (d Description) Unit() string {
	t := d.field.Type()
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case d.unit != "":
		return d.unit
	case strings.HasSuffix(d.Key, "_bytes") && (d.high == nil || strings.Trim(String(d.high), "0123456789") == ""):
		return "bytes"
	}
	return ""
}

// Shown is the value that a document shows: the default, or an example where the default says nothing; empty for a section without one.
func (d Description) Shown() string {
	switch {
	case d.example != "":
		return d.example
	case d.IsSection():
		return ""
	}
	return String(d.standard)
}

// Explained is what a document says about the option: its meaning, its range and its words, and the meaning of its zero value.
func (d Description) Explained() string {
	key := func(key string) string { return key }
	text := d.Doc(key)
	if r := d.Range(); r != "" {
		text += " " + r + "."
	}
	if slices.ContainsFunc(d.Words, func(word string) bool { return !strings.Contains(text, word) }) {
		text += " One of " + strings.Join(d.Words, ", ") + "."
	}
	switch meaning, zero := d.Meaning(key), d.Zero(); {
	case meaning != "" && zero != "" && d.example == "":
		text += " " + zero + ": " + meaning + "."
	case meaning != "":
		text += " Default: " + meaning + "."
	}
	return text
}

// Zero is the text of the zero value of a number; empty: the value is none.
func (d Description) Zero() string {
	zero := reflect.Zero(d.field.Type())
	if !zero.CanInt() && !zero.CanUint() && !zero.CanFloat() {
		return ""
	}
	return String(zero.Interface())
}
