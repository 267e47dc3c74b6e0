// Package option provides what all settings share, whatever their source: the error type, the text forms of amounts,
// ratios and addresses, and the form of names. The owner of a setting checks it with this package; package config adds the
// place in the file, and the command line the name of the flag.
package option

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"oneway.example/exporter/core/unit"
)

// Error is the error of an option, with the expectation.
type Error struct {
	// Key is the option's path inside its section, such as "interval" or "codecs[1]".
	Key string
	// Problem completes the sentence "<key> ...", such as "is 0s; it must be between 100us
	// and 1h".
	Problem string
	// At is the key in the file whose place is reported; empty: Key.
	At string

	format string // of Problem
	args   []any
}

// Key is the key of another option in the Problem of an Error: a command line shows the name of its flag.
type Key string

// Error is "<key> <problem>".
func (e *Error) Error() string { return e.Key + " " + e.Problem }

// Named is Problem with the names that name gives to other options.
func (e *Error) Named(name func(key string) string) string {
	if e.format == "" {
		return e.Problem
	}
	args := slices.Clone(e.args)
	for i, a := range args {
		if key, ok := a.(Key); ok {
			args[i] = name(string(key))
		}
	}
	return fmt.Sprintf(e.format, args...)
}

// Errorf makes an *Error of an option. An argument of type Key is another option.
func Errorf(key, format string, args ...any) error {
	return &Error{Key: key, Problem: fmt.Sprintf(format, args...), format: format, args: args}
}

// Between is an *Error if v is below low or above high, and nil otherwise.
func Between[T cmp.Ordered](key string, v, low, high T) error {
	if v >= low && v <= high {
		return nil
	}
	if unlimited(high) {
		return Errorf(key, "is %v; it must be %s", v, atLeast(low))
	}
	if low >= high {
		return Errorf(key, "is %v; it must be %v", v, low)
	}
	return Errorf(key, "is %v; it must be between %v and %v", v, low, high)
}

// OneOf is an *Error if v is not one of the words, and nil otherwise.
func OneOf(key, v string, words ...string) error {
	if slices.Contains(words, v) {
		return nil
	}
	return Errorf(key, "is %q; it must be %s", v, unit.List("or", words...))
}

// EachOnce is an *Error if a value of a list is out of range or a duplicate, and nil otherwise.
func EachOnce[T cmp.Ordered](key string, values []T, low, high T) error {
	for i, v := range values {
		at := fmt.Sprintf("%s[%d]", key, i)
		if err := Between(at, v, low, high); err != nil {
			return err
		}
		if slices.Contains(values[:i], v) {
			return Errorf(at, "is %v for the second time", v)
		}
	}
	return nil
}

// Missing is an *Error if so is true, and nil otherwise. why states the reason or the expectation, and is a format as that of
// Errorf.
func Missing(so bool, key, why string, args ...any) error {
	if !so {
		return nil
	}
	return Errorf(key, "is missing; "+why, args...)
}

// namePattern is the form of names that become label values and parts of dashboard URLs.
var namePattern = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,%d}$`, MaxName-1))

// MaxName is the most characters of a name.
const MaxName = 100

// Name is an *Error if v does not match namePattern, and nil otherwise.
func Name(key, v string) error {
	if namePattern.MatchString(v) {
		return nil
	}
	return Errorf(key, "is %q; it must begin with a letter or digit, and have at most %d letters, digits, and _ . : / -", v, MaxName)
}

// Default sets v to d if it is zero and was not given.
func Default[T comparable](given bool, v *T, d T) {
	var zero T
	if *v == zero && !given {
		*v = d
	}
}
