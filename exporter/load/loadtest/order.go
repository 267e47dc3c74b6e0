package loadtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe/report"
)

// DescribeSeed describes the option of the seed; what are the parts of a run that it orders, such as "cells".
func DescribeSeed(seed *uint64, what string) option.Description {
	return option.Value(seed, 0, "Seed of the random order of the "+what+".").Unset("another order for each run")
}

// DescribeRepetitions describes the option of the repetitions of a sweep.
func DescribeRepetitions(repetitions *int, usual int) option.Description {
	return option.Number(repetitions, usual, 1, 100, "Number of measurements of each cell.")
}

// CellsLine is the line of a report about the measured cells of all, and their order.
func CellsLine(measured, all int, seed uint64) report.Line {
	return report.Line{Quantity: "cells", Value: fmt.Sprintf("%d of %d, order by seed %d", measured, all, seed)}
}

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
