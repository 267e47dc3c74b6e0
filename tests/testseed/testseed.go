// Package testseed gives the seed of a test's random numbers: the same in every run,
// so that a failure is repeatable, unless the environment sets another.
package testseed

import (
	"math/rand/v2"
	"os"
	"strconv"
)

// Variable of the environment holds the seed of all tests: a number, or Random for
// one that each test draws, for soak tests. Unset or empty: Default.
const Variable = "ONEWAY_SEED"

const (
	// Random is the value of Variable with which each test draws its own seed.
	Random = "random"
	// Default is the seed if Variable is unset.
	Default uint64 = 1
)

// TB is what Of needs of testing.TB.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Of returns the seed and logs it. A value of Variable that is neither a whole number
// nor Random fails the test.
func Of(t TB) uint64 {
	t.Helper()
	seed := Default
	switch text := os.Getenv(Variable); text {
	case "":
	case Random:
		seed = rand.Uint64()
	default:
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("testseed: %s is %q; want a whole number or %q", Variable, text, Random)
		}
	}
	t.Logf("seed %d (%s=%d repeats it)", seed, Variable, seed)
	return seed
}
