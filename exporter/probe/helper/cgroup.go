package helper

import (
	"bytes"
	"errors"
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

// prefix begins the names of groups; the owner follows.
const prefix = "helper-"

// owner names a running process by its number and its start time, which a later process of the same number does not have; empty: it
// does not run.
func owner(pid string) string {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	// The name in parentheses may have spaces. Field 22 is the start time in ticks since boot (proc_pid_stat(5)); field 3 is the first here.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return pid + "-" + string(fields[22-3]) + "-"
}

// removeTimeout is the time in which the kernel removes the processes of a killed group.
const removeTimeout = 2 * time.Second

// hasOwner reports whether the owner in the name of a group runs.
func hasOwner(name string) bool {
	name = strings.TrimPrefix(name, prefix)
	pid, _, _ := strings.Cut(name, "-")
	running := owner(pid)
	return running != "" && strings.HasPrefix(name, running)
}

// newGroup makes a group below a delegated one, with a limit of memory in bytes if the kernel has one there; 0: no limit.
func newGroup(parent string, memory int64) (*group, error) {
	// Without the controller, or while processes are in the parent, the group has no limit; it still ends its processes together.
	_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+memory"), 0)
	name, err := os.MkdirTemp(parent, prefix+owner(strconv.Itoa(os.Getpid())))
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
// (user.delegate, since version 251), for Options.Cgroup. Empty: there is none.
func Delegated() string {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "" // a kernel without control groups
	}
	return delegated("/sys/fs/cgroup", string(groups))
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

// RemoveLeft ends the programs that agents which no longer run have left in a delegated control group, and removes their groups. The
// groups of other agents of the same PID namespace stay. An empty parent has no groups.
func RemoveLeft(parent string) {
	if parent == "" {
		return
	}
	all, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // the pattern is valid
	for _, name := range all {
		if hasOwner(filepath.Base(name)) {
			continue
		}
		if dir, err := os.Open(name); err == nil {
			g := &group{dir: dir}
			g.kill()
			g.remove()
		}
	}
}
