package memlimit

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestLimitIsTheLeastOfTheControlGroups(t *testing.T) {
	const self = "proc/self/cgroup"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups": {nil, math.MaxInt64},
		"none has a limit":  {map[string]string{self: "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, math.MaxInt64},
		"the group's own":   {map[string]string{self: "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "67108864\n"}, 64 << 20},
		"that of the group around it": {map[string]string{
			self: "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "67108864\n", "sys/fs/cgroup/a/memory.max": "33554432\n",
		}, 32 << 20},
		"in a container":        {map[string]string{self: "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20},
		"a name with a colon":   {map[string]string{self: "0::/a:b\n", "sys/fs/cgroup/a:b/memory.max": "1048576\n"}, 1 << 20},
		"beside version 1":      {map[string]string{self: "4:memory:/x\n0::/a\n", "sys/fs/cgroup/a/memory.max": "1048576\n"}, 1 << 20},
		"what cannot be parsed": {map[string]string{self: "0::/a\n", "sys/fs/cgroup/a/memory.max": "-1\n"}, math.MaxInt64},
		"outside of the namespace's root": {map[string]string{
			self: "0::/../a\n", "sys/fs/cgroup/memory.max": "1048576\n", "sys/fs/a/memory.max": "1\n", "sys/fs/cgroup/a/memory.max": "2\n",
		}, 1 << 20},
		"version 1": {map[string]string{
			self: "9:name=systemd:/\n4:memory:/a/b\n1:cpu:/a\n0::/\n", "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "67108864\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 64 << 20},
		"version 1 without a limit": {map[string]string{
			self: "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854710272\n", // pages of 64 KiB
		}, math.MaxInt64},
		"version 1, several controllers": {map[string]string{
			self: "4:cpu,memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1048576\n",
		}, 1 << 20},
		"version 1, the group is what is mounted": {map[string]string{
			self: "4:memory:/docker/0123\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "67108864\n",
		}, 64 << 20},
		"version 1, of another controller": {map[string]string{
			self: "4:cpu:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1048576\n",
		}, math.MaxInt64},
	} {
		root := fstest.MapFS{}
		for f, text := range c.files {
			root[f] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := groups(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestRuntimeUsesTheLimitOfTheControlGroupByDefault(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	root := fstest.MapFS{
		"proc/self/cgroup":         &fstest.MapFile{Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max": &fstest.MapFile{Data: []byte("1073741824\n")},
	}
	const told, group = 512 << 20, 1 << 30
	for _, c := range []struct {
		variable string
		root     fstest.MapFS
		want     int64
	}{{"512MiB", root, told}, {"off", root, told}, {"", nil, told}, {"", root, group / 5 * 4}} {
		debug.SetMemoryLimit(told) // the limit without SetFromCgroups
		t.Setenv("GOMEMLIMIT", c.variable)
		if c.variable == "" {
			_ = os.Unsetenv("GOMEMLIMIT") // t.Setenv restores it
		}
		adopt(c.root, slog.New(slog.DiscardHandler))
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("GOMEMLIMIT=%q, %d files: the runtime's limit is %d, want %d", c.variable, len(c.root), got, c.want)
		}
	}
}

func TestGarbageIsCollectedEarlierUnlessGOGCIsSet(t *testing.T) {
	usual := debug.SetGCPercent(100)
	defer debug.SetGCPercent(usual)
	t.Setenv("GOGC", "100")
	SetGCPercent()
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("%d %% with GOGC set, want 100 %%", got)
	}
	if err := os.Unsetenv("GOGC"); err != nil { // Setenv puts it back
		t.Fatal(err)
	}
	SetGCPercent()
	if got := debug.SetGCPercent(100); got != GCPercent {
		t.Errorf("%d %%, want %d %%", got, GCPercent)
	}
}

func TestBufferIsSmallUnderALimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	debug.SetMemoryLimit(math.MaxInt64)
	if got, want := Buffer(16<<20), int(min(16<<20, Process()/16)); got != want {
		t.Errorf("%d, want %d", got, want)
	}
	debug.SetMemoryLimit(8 << 20)
	if got := Buffer(16 << 20); got > 512<<10 {
		t.Errorf("%d with a limit of 8 MiB, want 512 KiB at most", got)
	}
}

func TestProcessHasNoMoreThanItsAddressSpace(t *testing.T) {
	if got := Process(); got > math.MaxInt {
		t.Errorf("%d bytes", got)
	}
}
