// Package memlimit says how much memory this process may take, and has the Go runtime keep to it.
package memlimit

import (
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// The part of the control groups' limit that the Go runtime is given. The rest is for what the
// runtime does not count: the program's own pages and what the kernel keeps for sockets.
const shareOfRuntime, shareOfGroup = 4, 5

// none is the least limit that is none: version 1 has the largest number of whole pages there.
const none = 1 << 62

// Process is how many bytes this process may take: the least of the Go runtime's limit
// (GOMEMLIMIT, Adopt) and of those of its control groups. Without any it is math.MaxInt64.
func Process() int64 {
	return min(debug.SetMemoryLimit(-1), groups(os.DirFS("/")))
}

// Adopt gives the Go runtime four fifths of the control groups' limit, if they have one and
// GOMEMLIMIT is not set, and logs it. It is for the beginning of a program.
func Adopt(log *slog.Logger) { adopt(os.DirFS("/"), log) }

// gcPercent is by how much the heap of an agent grows beyond what is alive before it is collected. What is alive
// are sessions and series, which do not change in size, and little is allocated: a thousand paths are collected every
// few seconds, in some milliseconds.
const gcPercent = 50

// Frugal has the Go runtime collect garbage earlier than it does by itself, unless GOGC is set. It is for the
// beginning of a program that keeps much and allocates little.
func Frugal() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
}

func adopt(root fs.FS, log *slog.Logger) {
	limit := groups(root)
	if _, set := os.LookupEnv("GOMEMLIMIT"); set || limit == math.MaxInt64 {
		return
	}
	part := limit / shareOfGroup * shareOfRuntime
	debug.SetMemoryLimit(part)
	log.Info("The Go runtime keeps to a part of the control group's memory limit", "runtime_bytes", part, "limit_bytes", limit)
}

// groups is the least limit of this process's control groups and of those that they are in, as
// far as they can be seen in the root directory of a host: memory.max (version 2) and
// memory.limit_in_bytes (version 1). Without any it is math.MaxInt64.
func groups(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	all, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least // no Linux, or no /proc: nothing is told
	}
	for line := range strings.Lines(string(all)) {
		// cgroups(7): hierarchy-ID:controller-list:cgroup-path
		id, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, found := strings.Cut(rest, ":")
		switch {
		case !found:
		case id == "0" && controllers == "":
			least = min(least, leastOf(root, "sys/fs/cgroup", group, "memory.max"))
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			least = min(least, leastOf(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
		}
	}
	return least
}

// leastOf is the least limit from a group up to what is mounted, which is the process's own group
// where that cannot be seen by its name: in a container, or outside of the namespace's root ("/..").
func leastOf(root fs.FS, mount, group, file string) int64 {
	least := int64(math.MaxInt64)
	if strings.HasPrefix(group, "/..") {
		group = "/"
	}
	for group = path.Join("/", group); ; group = path.Dir(group) {
		if n := limitIn(root, path.Join(mount, group, file)); n > 0 && n < none {
			least = min(least, n)
		}
		if group == "/" {
			return least
		}
	}
}

// limitIn reads a limit; 0: there is none ("max"), or it cannot be read.
func limitIn(root fs.FS, name string) int64 {
	b, _ := fs.ReadFile(root, name)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}
