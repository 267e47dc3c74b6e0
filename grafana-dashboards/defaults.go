package main

import (
	"strconv"
	"strings"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// inPercent, inMillis and inMicros are the default of a threshold in a text.
func inPercent(t rules.Threshold) string { return amount(t.Default*100, "%") }
func inMillis(t rules.Threshold) string  { return amount(t.Default*1e3, "ms") }
func inMicros(t rules.Threshold) string  { return amount(t.Default*1e6, "us") }

func amount(value float64, unit string) string { return plain(value) + " " + unit }

// plain has six digits: the product of a default and a unit is not exact.
func plain(value float64) string { return strconv.FormatFloat(value, 'g', 6, 64) }

// meanings are the values of a label with their meanings: "gap (the first after missed pulses), step (the clock was stepped)".
func meanings(d *metric.Desc, label string) string {
	var all []string
	for _, entry := range d.Values[label] {
		value, meaning, _ := strings.Cut(entry, ": ")
		all = append(all, value+" ("+meaning+")")
	}
	return strings.Join(all, ", ")
}

// baselineDays are the days of a baseline.
func baselineDays() string { return amount(rules.BaselineDays, "days") }
