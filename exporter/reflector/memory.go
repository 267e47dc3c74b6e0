package reflector

import "math"

// What sessions take, in octets: one whose sender has a Receipt and counts, all indexes
// included, and what its window may grow by if all grow alike.
const (
	sessionOctets = 3 << 10
	growthOctets  = 1 << 10
	// leastGrowth lets a few windows of a small table grow to their full size.
	leastGrowth = 4 << 20
)

// memoryShare is the part of the memory limit that sessions may take: the garbage collector
// may let as much again lie about, and the agent has other things to do.
const memoryShare = 4

// fewestSessions are remembered whatever the memory limit.
const fewestSessions = 256

// sessionsWithin is how many sessions there may be in a process that may take so many octets.
func sessionsWithin(octets int64) int {
	return int(max(min(octets/memoryShare/(sessionOctets+growthOctets), math.MaxInt32), fewestSessions))
}
