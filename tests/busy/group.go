package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// group is a control group with a freezer.
type group struct {
	dir string
	// file has the state: frozen stops all processes of the group, thawed continues them.
	file, frozen, thawed string
}

// newGroup makes a control group: of version 1 where its freezer is mounted, else of version 2.
func newGroup(name string) (group, error) {
	const root = "/sys/fs/cgroup"
	for _, g := range []group{
		{filepath.Join(root, "freezer", name), "freezer.state", "FROZEN", "THAWED"},
		{filepath.Join(root, name), "cgroup.freeze", "1", "0"},
	} {
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(g.dir, g.file)); err == nil {
			return g, nil
		}
		_ = os.Remove(g.dir) // empty
	}
	return group{}, fmt.Errorf("no control group with a freezer can be made below %s: root is needed, and the controller freezer of version 1, or version 2", root)
}

// command is a command that runs in the group with all its descendants. The end of ctx ends it by SIGTERM, for its own cleanup.
func (g group) command(ctx context.Context, command []string) *exec.Cmd {
	c := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs")}, command...)...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	return c
}

func (g group) freeze() error { return g.set(g.frozen) }
func (g group) thaw() error   { return g.set(g.thawed) }

func (g group) set(state string) error {
	return os.WriteFile(filepath.Join(g.dir, g.file), []byte(state), 0)
}

// close ends what the command has left, and removes the group.
func (g group) close() error {
	err := g.thaw()
	for range 100 { // of 100 ms: killed processes leave the group
		procs, errRead := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
		if err = errors.Join(err, errRead); err != nil {
			break
		}
		left := strings.Fields(string(procs))
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			var n int
			if _, err := fmt.Sscan(pid, &n); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended
			}
		}
		time.Sleep(100 * time.Millisecond) // no event tells that a group is empty in version 1
	}
	return errors.Join(err, os.Remove(g.dir))
}
