// Package soak runs two agents for minutes or hours: 1,000 paths over an emulated link, load
// tests, a scrape every five seconds, and faults of link, hosts, configuration and attackers in an
// random order. It asserts for any duration: packets are conserved, every path
// recovers, and nothing grows. It runs only on request (make soak).
package soak

import (
	"os"
	"testing"
	"time"

	"oneway.example/tests/program"
)

// variable is the environment variable with the duration of the faults, such as 10m. Unset or empty: the
// test is skipped.
const variable = "ONEWAY_SOAK"

// binary is the program under test, built once; empty where it is not needed.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(variable) == "" {
		os.Exit(m.Run())
	}
	os.Exit(program.Main(m.Run, func(built string) { binary = built }))
}

// duration is the duration of the faults; without one the test is skipped.
func duration(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		t.Skipf("SKIPPED, NOT PASSED: it runs for minutes when it is asked for: %s=10m, or make soak", variable)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Minute {
		t.Fatalf("%s is %q; want a duration of at least 1m", variable, text)
	}
	return d
}
