// Package memlimit determines the memory limit of this process, and sets the Go runtime's limit and GC percentage.
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

// The share of the control groups' limit for the Go runtime. The rest is for memory that the runtime does not count: the
// program's own pages and the kernel's socket buffers.
const shareOfRuntime, shareOfGroup = 4, 5

// none is the smallest value that means no limit: version 1 reports the largest number of whole pages.
const none = 1 << 62

// Process is the memory limit of this process in bytes: the minimum of the Go runtime's limit (GOMEMLIMIT,
// SetFromCgroups), the limits of its control groups, and half the address space: without another it is math.MaxInt.
func Process() int64 {
	return min(debug.SetMemoryLimit(-1), groups(os.DirFS("/")), math.MaxInt)
}

// Buffer is the size for a buffer that others can fill: most, or a sixteenth of the memory limit if that is less. The kernel
// charges a full receive buffer of a socket to the process's control group, with its own overhead: twice the size.
func Buffer(most int) int { return int(min(int64(most), Process()/16)) }

// SetFromCgroups sets the Go runtime's limit to four fifths of the control groups' limit, if there is one and
// GOMEMLIMIT is not set, and logs it. Call it at the start of a program.
func SetFromCgroups(log *slog.Logger) { adopt(os.DirFS("/"), log) }

// GCPercent is the growth of an agent's heap over its live part before a garbage collection. The live part is sessions and
// series, which do not change in size, and few allocations follow: with a thousand paths a collection takes place every
// second and takes some milliseconds.
const GCPercent = 25

// SetGCPercent makes the Go runtime collect garbage earlier than by default, unless GOGC is set. It is for programs with a large
// live heap and few allocations; call it at the start of a program.
func SetGCPercent() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(GCPercent)
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

// groups is the minimum of the limits of this process's control groups and their parents, as far as they are visible in
// the root directory of a host: memory.max (version 2) and memory.limit_in_bytes (version 1). Without any it is
// math.MaxInt64.
func groups(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	all, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least // not Linux, or no /proc
	}
	for line := range strings.Lines(string(all)) {
		// cgroups(7): hierarchy-ID:controller-list:cgroup-path
		id, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, found := strings.Cut(rest, ":")
		switch {
		case !found:
		case id == "0" && controllers == "":
			least = min(least, minimum(root, "sys/fs/cgroup", group, "memory.max"))
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			least = min(least, minimum(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
		}
	}
	return least
}

// minimum is the minimum of the limits from a group up to the mount point. The mount point is the process's own group
// if the path is not visible: in a container, or outside of the namespace's root ("/..").
func minimum(root fs.FS, mount, group, file string) int64 {
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

// limitIn reads a limit; 0: no limit ("max"), or it cannot be read.
func limitIn(root fs.FS, name string) int64 {
	b, _ := fs.ReadFile(root, name)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}
