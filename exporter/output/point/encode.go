package point

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/influxdata/line-protocol/v2/lineprotocol"
)

// Limits of a value in bytes; longer ones are cut. InfluxDB 1.8 refuses a series key above 64 KiB.
const (
	MaxTagBytes    = 1024
	MaxStringBytes = 16 << 10
)

// Encoder appends points as lines. It allocates nothing once its buffers have their size. The zero value is ready; it is not
// safe for concurrent use.
type Encoder struct {
	lines lineprotocol.Encoder
}

// Append appends the line of p, with its newline. A point that cannot be encoded (without a field, a time or a measurement, or
// with unsorted tags) appends nothing and returns an error.
func (e *Encoder) Append(to []byte, p *Point) ([]byte, error) {
	if len(p.Fields) == 0 || p.At == 0 {
		return to, fmt.Errorf("point: encode %s: %d fields at time %d, want a field and a time", p.Measurement, len(p.Fields), p.At)
	}
	e.lines.SetBuffer(to)
	e.lines.StartLine(p.Measurement)
	for _, t := range p.Tags {
		if t.Value != "" {
			e.lines.AddTag(t.Key, CleanTag(t.Value))
		}
	}
	for _, f := range p.Fields {
		e.lines.AddField(f.Key, f.Value)
	}
	e.lines.EndLine(p.At.Time())
	if err := e.lines.Err(); err != nil {
		return to, fmt.Errorf("point: encode %s: %w", p.Measurement, err)
	}
	return e.lines.Bytes(), nil
}

// CleanTag is value as a tag: the line protocol has no control characters, and it cannot express a backslash at the end or
// before a comma, a space or an equals sign. Each of these is replaced by U+FFFD, as is invalid UTF-8. It allocates only if
// something is replaced.
func CleanTag(value string) string {
	if clean(value) && len(value) <= MaxTagBytes {
		return value
	}
	var b strings.Builder
	for i, r := range value {
		if b.Len()+utf8.RuneLen(r) > MaxTagBytes {
			break
		}
		if r < ' ' || r == 0x7f || r == '\\' && misread(value, i) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), "\\")
}

func clean(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c == 0x7f || c == '\\' && misread(value, i) {
			return false
		}
	}
	return utf8.ValidString(value)
}

// misread reports whether stores read the backslash at i as an escape.
func misread(value string, i int) bool {
	return i+1 == len(value) || strings.IndexByte(", =", value[i+1]) >= 0
}

// Float appends a float field; a value that is not finite has no field.
func Float(to []Field, key string, v float64) []Field {
	value, ok := lineprotocol.FloatValue(v)
	if !ok {
		return to
	}
	return append(to, Field{key, value})
}

// Int appends an integer field.
func Int(to []Field, key string, v int64) []Field {
	return append(to, Field{key, lineprotocol.IntValue(v)})
}

// CountOf is a counter's value as an integer; NaN is 0.
func CountOf(v float64) int64 {
	switch {
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v > 0:
		return int64(v)
	}
	return 0
}

// Text is a string value. Invalid UTF-8 and control characters are replaced by U+FFFD. It allocates.
func Text(s string) lineprotocol.Value {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return utf8.RuneError
		}
		return r
	}, s)
	for len(s) > MaxStringBytes {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	v, _ := lineprotocol.StringValue(s) // no error: Map makes valid UTF-8 of every rune
	return v
}
