package helper

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/tests/await"
)

// controlGroup makes a control group of version 2 for a test.
func controlGroup(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	mount := regexp.MustCompile(`(?m)^\S+ (\S+) cgroup2 rw`).FindStringSubmatch(string(mounts))
	if mount == nil {
		t.Skip("control groups of version 2 are not mounted for writing")
	}
	dir, err := os.MkdirTemp(mount[1], "oneway-test-")
	if err != nil {
		t.Skip("needs root: ", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err) // a group of a program is left in it
		}
	})
	return dir
}

func TestControlGroupEndsChildrenThatHaveLeftTheProcessGroup(t *testing.T) {
	dir := controlGroup(t)
	for _, method := range []string{"exit", "hang", "leak"} {
		h := newHelper(t, "serve", func(o *Options) {
			if o.Cgroup = dir; method == "leak" {
				limitMemory(t, o)
			}
		})
		var pids []int
		if err := h.Call(t.Context(), "child", true, &pids); err != nil {
			t.Fatal(err)
		}
		if method == "hang" {
			h.options.Timeout = 500 * time.Millisecond
		}
		err := h.Call(t.Context(), method, nil, nil)
		want := map[string]Reason{"exit": Crashed, "hang": Timeout, "leak": OutOfMemory}[method]
		if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Reason != want {
			t.Errorf("%s: got %v, want %s", method, err, want)
		}
		for _, pid := range pids {
			await.That(t, "no process is left", func() bool { return !alive(pid) })
		}
	}
}

// Two agents have helpers in one delegated group. When one is killed, the next agent ends its helper, and leaves the other's.
func TestOnlyGroupsOfAgentsThatHaveEndedAreRemoved(t *testing.T) {
	dir := controlGroup(t)
	h := newHelper(t, "serve", func(o *Options) { o.Cgroup = dir })
	var ours []int
	if err := h.Call(t.Context(), "child", true, &ours); err != nil {
		t.Fatal(err)
	}
	other, theirs := startAgent(t, groupOfAgent+"="+dir)
	RemoveLeft(dir) // by a third agent
	groups := func() int {
		all, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	for _, pid := range append(ours, theirs...) {
		if !alive(pid) {
			t.Errorf("process %d of a running agent has ended", pid)
		}
	}
	if n := groups(); n != 2 {
		t.Errorf("%d groups, want 2", n)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	RemoveLeft(dir)
	for _, pid := range theirs {
		await.That(t, "no process of the killed agent is left", func() bool { return !alive(pid) })
	}
	for _, pid := range ours {
		if !alive(pid) {
			t.Errorf("process %d of a running agent has ended", pid)
		}
	}
	if n := groups(); n != 1 {
		t.Errorf("%d groups, want 1", n)
	}
}

// A number that a later process has again is no owner.
func TestOwnerIsKnownByItsStartTime(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	own := owner(pid)
	if !regexp.MustCompile(`^[0-9]+-[0-9]+-$`).MatchString(own) || owner("0") != "" {
		t.Errorf("owner %q, and %q of no process", own, owner("0"))
	}
	for name, want := range map[string]bool{own + "1": true, pid + "-1-1": false, pid: false, "1": false, "": false, "0-1-1": false} {
		if got := hasOwner(prefix + name); got != want {
			t.Errorf("%q has an owner: %v", name, got)
		}
	}
}

func TestGroupHasItsLimits(t *testing.T) {
	parent := t.TempDir() // as a file system whose files can all be written
	g, err := newGroup(parent, 123_000)
	if err != nil {
		t.Fatal(err)
	}
	defer g.dir.Close()
	content := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if !g.limited || content(filepath.Join(parent, "cgroup.subtree_control")) != "+memory" {
		t.Errorf("%+v", g)
	}
	for name, want := range map[string]string{"memory.max": "123000", "memory.swap.max": "0", "memory.oom.group": "1"} {
		if got := content(filepath.Join(g.dir.Name(), name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for events, want := range map[string]bool{"low 0\noom 1\noom_kill 0\n": false, "low 0\noom 1\noom_kill 3\n": true} {
		if err := os.WriteFile(filepath.Join(g.dir.Name(), "memory.events"), []byte(events), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := g.outOfMemory(); got != want {
			t.Errorf("%q: %v", events, got)
		}
	}
}

func TestDelegatedGroupIsTheNearestThatIsMarked(t *testing.T) {
	root := t.TempDir()
	unit := filepath.Join(root, "system.slice", "oneway.service")
	if err := os.MkdirAll(filepath.Join(unit, "agent"), 0o755); err != nil {
		t.Fatal(err)
	}
	own := "5:memory:/elsewhere\n0::/system.slice/oneway.service/agent\n"
	if got := delegated(root, own); got != "" {
		t.Errorf("without a mark: %q", got)
	}
	if err := unix.Setxattr(unit, "user.delegate", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	if got := delegated(root, own); got != unit {
		t.Errorf("got %q, want %q", got, unit)
	}
	if got := delegated(root, strings.Replace(own, "0::", "0::/../../..", 1)); got != "" {
		t.Errorf("outside of the root: %q", got)
	}
}
