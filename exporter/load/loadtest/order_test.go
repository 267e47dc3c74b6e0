package loadtest

import (
	"slices"
	"testing"
)

func TestTurnsAreRandomAndReproducibleBySeed(t *testing.T) {
	a := Turns(18, 3, 1)
	b := Turns(18, 3, 1)
	c := Turns(18, 3, 2)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("orders by seeds 1, 1 and 2: %v, %v, %v", a, b, c)
	}
	if slices.Equal(a[:18], a[18:36]) {
		t.Error("two repetitions have the same order")
	}
	for r := range 3 {
		round := slices.Sorted(slices.Values(a[18*r : 18*r+18]))
		for i, v := range round {
			if i != v {
				t.Fatalf("repetition %d is of cells %v", r, round)
			}
		}
	}
}

func TestSeedIsRandomUnlessConfigured(t *testing.T) {
	if a, b := Seed(0), Seed(0); a == b || a == 0 || b == 0 {
		t.Errorf("two runs have the seeds %d and %d", a, b)
	}
	if got := Seed(12); got != 12 {
		t.Errorf("seed %d, want 12", got)
	}
}
