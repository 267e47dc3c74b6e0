package reflector

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

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

// memoryLimit is how many octets this process may take: the least of the Go runtime's limit
// (GOMEMLIMIT) and of those of its control groups (memory.max of version 2). Without any it is
// math.MaxInt64.
func memoryLimit() int64 {
	return min(debug.SetMemoryLimit(-1), groupLimit(os.DirFS("/")))
}

// groupLimit is the least memory.max of this process's control group and of those that it is
// in, as far as they can be seen in the root directory of a host.
func groupLimit(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least // no Linux, or no /proc: nothing is told
	}
	for line := range strings.Lines(string(groups)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		for ok {
			if n, known := maxOf(root, path.Join("sys/fs/cgroup", group, "memory.max")); known {
				least = min(least, n)
			}
			if ok = group != "" && group != "."; ok {
				group = path.Dir(group)
			}
		}
	}
	return least
}

// maxOf reads a limit; "max" is none.
func maxOf(root fs.FS, name string) (n int64, known bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil && n > 0
}
