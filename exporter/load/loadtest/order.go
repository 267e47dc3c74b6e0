package loadtest

import (
	"cmp"
	"math/rand/v2"
)

// Seed returns the seed of a run's order; a random one, for a configured zero, has at most 32 bits, to be typed easily.
func Seed(configured uint64) uint64 { return cmp.Or(configured, 1+rand.Uint64N(1<<32)) }

// Turns returns the order in which a sweep measures its cells, as indices. Each repetition has its own random order, so
// that a path that changes with time affects no cell in particular.
func Turns(cells, repetitions int, seed uint64) (turns []int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range repetitions {
		turns = append(turns, rng.Perm(cells)...)
	}
	return turns
}
