package loadserver

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
)

// Limits of the duration that a token permits. The longest exceeds the longest transfer of any type of traffic.
const (
	minTokenDuration = time.Second
	maxTokenDuration = time.Hour
)

// TokenLimit is a limit that a token may have: a word KEY=VALUE of its line in a tokens file. A line without the word has the default,
// or no such limit.
type TokenLimit struct {
	Key string
	// Doc is a sentence about the limit, Placeholder the word for a value.
	Doc, Placeholder string

	parse func(to *loadcontrol.Limits, value string) error
	value func(from loadcontrol.Limits) any // zero: no such limit
}

// TokenLimits are all limits, in the order of a line.
func TokenLimits() []TokenLimit {
	return []TokenLimit{
		{
			Key: "rate", Doc: "Maximum rate in one direction, such as 20Mbit.", Placeholder: "RATE",
			parse: parseRate,
			value: func(l loadcontrol.Limits) any { return option.Rate(l.BytesPerSecond) },
		},
		{
			Key: "duration", Placeholder: "DURATION",
			Doc:   fmt.Sprintf("Maximum duration of a stream, %s to %s.", option.String(minTokenDuration), option.String(maxTokenDuration)),
			parse: parseDuration,
			value: func(l loadcontrol.Limits) any { return l.Duration },
		},
		{
			Key: "sessions", Doc: fmt.Sprintf("Maximum number of sessions at the same time; default: %d.", DefaultTokenSessions), Placeholder: "N",
			parse: parseSessions,
			value: func(l loadcontrol.Limits) any { return l.Sessions },
		},
		{
			Key: "per-day", Doc: "Maximum amount of data per day, both directions together, with its unit, such as 10GB.", Placeholder: "BYTES",
			parse: parsePerDay,
			value: func(l loadcontrol.Limits) any { return perDay(l.BytesPerDay) },
		},
	}
}

func parseRate(l *loadcontrol.Limits, value string) error {
	var r option.Rate
	err := r.UnmarshalText([]byte(value))
	l.BytesPerSecond = float64(r)
	return err
}

func parseDuration(l *loadcontrol.Limits, value string) (err error) {
	if l.Duration, err = time.ParseDuration(value); err != nil || l.Duration < minTokenDuration || l.Duration > maxTokenDuration {
		return fmt.Errorf("it must be between %v and %v, such as 30s or 5m", minTokenDuration, option.String(maxTokenDuration))
	}
	return nil
}

func parseSessions(l *loadcontrol.Limits, value string) (err error) {
	if l.Sessions, err = strconv.Atoi(value); err != nil || l.Sessions < 1 || l.Sessions > maxMaxSessions {
		return fmt.Errorf("it must be between 1 and %d", maxMaxSessions)
	}
	return nil
}

// perDay is an amount of data whose text has a unit; zero: no limit.
type perDay option.Bytes

// String is a text that parsePerDay accepts.
func (p perDay) String() string {
	text := option.String(option.Bytes(p))
	if !strings.HasSuffix(text, "B") {
		text += "B"
	}
	return text
}

func parsePerDay(l *loadcontrol.Limits, value string) error {
	b, err := option.BytesWithUnit(value)
	if err == nil && b < 1 {
		return errors.New("it must be an amount of data above 0, such as 500MB or 10GB")
	}
	l.BytesPerDay = int64(b)
	return err
}

// ParseLimits parses the limits of a line, each at most once.
func ParseLimits(words []string) (l loadcontrol.Limits, err error) {
	seen, all := map[string]bool{}, TokenLimits()
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if seen[key] {
			return loadcontrol.Limits{}, fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		at := slices.IndexFunc(all, func(one TokenLimit) bool { return one.Key == key })
		if at < 0 {
			var keys []string
			for _, one := range all {
				keys = append(keys, one.Key)
			}
			return loadcontrol.Limits{}, fmt.Errorf("%q is no limit; it must be %s", word, unit.List("or", keys...))
		}
		if err := all[at].parse(&l, value); err != nil {
			return loadcontrol.Limits{}, fmt.Errorf("%s is %q; %w", key, value, err)
		}
	}
	return l, nil
}

// formatLimits returns the format that ParseLimits parses.
func formatLimits(l loadcontrol.Limits) (words []string) {
	for _, one := range TokenLimits() {
		if value := one.value(l); !reflect.ValueOf(value).IsZero() {
			words = append(words, one.Key+"="+option.String(value))
		}
	}
	return words
}
