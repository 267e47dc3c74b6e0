package helper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// group is a control group (version 2) of one program and its children.
type group struct {
	dir     *os.File
	limited bool // its memory is limited
}

// prefix begins the names of groups.
const prefix = "helper-"

// removeTimeout is the time in which the kernel removes the processes of a killed group.
const removeTimeout = 2 * time.Second

// newGroup makes a group below a delegated one, with a limit of memory in bytes if the kernel has one there; 0: no limit.
func newGroup(parent string, memory int64) (*group, error) {
	// Without the controller, or while processes are in the parent, the group has no limit; it still ends its processes together.
	_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+memory"), 0)
	name, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	g := &group{}
	if memory > 0 && os.WriteFile(filepath.Join(name, "memory.max"), []byte(strconv.FormatInt(memory, 10)), 0) == nil {
		g.limited = true
		_ = os.WriteFile(filepath.Join(name, "memory.swap.max"), []byte("0"), 0)  // a kernel without swap has no such file
		_ = os.WriteFile(filepath.Join(name, "memory.oom.group"), []byte("1"), 0) // since Linux 4.19
	}
	if g.dir, err = os.Open(name); err != nil {
		return nil, errors.Join(err, os.Remove(name))
	}
	return g, nil
}

// kill ends all processes of the group (Linux 5.14 and later).
func (g *group) kill() {
	if g != nil {
		_ = os.WriteFile(filepath.Join(g.dir.Name(), "cgroup.kill"), []byte("1"), 0) // an older kernel has no such file
	}
}

func (g *group) limitsMemory() bool { return g != nil && g.limited }

// outOfMemory reports whether the kernel has ended a process at the limit.
func (g *group) outOfMemory() bool {
	if !g.limitsMemory() {
		return false
	}
	text, err := os.ReadFile(filepath.Join(g.dir.Name(), "memory.events"))
	return err == nil && bytes.Contains(text, []byte("\noom_kill ")) && !bytes.Contains(text, []byte("\noom_kill 0\n"))
}

// remove removes the group, whose processes have been killed.
func (g *group) remove() {
	if g == nil {
		return
	}
	_ = g.dir.Close() // opened for reading only
	for begin := time.Now(); os.Remove(g.dir.Name()) != nil && time.Since(begin) < removeTimeout; {
		time.Sleep(10 * time.Millisecond) // the kernel removes killed processes a little later, and rmdir has no wait
	}
}

// Delegated is the nearest control group around this process that the service manager has delegated to it, as systemd marks it
// (user.delegate, since version 251), for Options.Cgroup. It ends programs that a killed agent has left there. Empty: there is none.
func Delegated() (string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("helper: %w", err)
	}
	dir := delegated("/sys/fs/cgroup", string(groups))
	if dir != "" {
		removeLeft(dir)
	}
	return dir, nil
}

// delegated searches the groups of a process, as /proc/PID/cgroup lists them, from its own up to root.
func delegated(root, groups string) string {
	for own := range strings.Lines(groups) {
		path, found := strings.CutPrefix(strings.TrimSpace(own), "0::") // version 2
		for dir := filepath.Join(root, path); found && dir != root && strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			mark := make([]byte, 8)
			if n, err := unix.Getxattr(dir, "user.delegate", mark); err == nil && string(mark[:n]) == "1" {
				return dir
			}
		}
	}
	return ""
}

// removeLeft ends and removes the groups of an agent that was killed.
func removeLeft(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // the pattern is valid
	for _, name := range left {
		if dir, err := os.Open(name); err == nil {
			g := &group{dir: dir}
			g.kill()
			g.remove()
		}
	}
}
