package heavy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneway.example/tests/lab"
	"oneway.example/tests/program"
)

// disk is a file system of a few blocks, in a mount namespace of its own that a process
// keeps.
type disk struct {
	*process
	dir string
}

// newDisk mounts one on a directory that it makes.
func newDisk(t *testing.T, host *lab.Host, dir string) *disk {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &disk{dir: dir}
	d.process = &process{program.Start(t, host, "unshare", "--mount", "sh", "-c", `mount -t tmpfs -o size=64k tmpfs "$0" && echo mounted && exec sleep 600`, dir)}
	program.Eventually(t, "the disk is mounted", func() bool {
		select {
		case <-d.Done:
			t.Fatalf("no disk: %s", &d.Stderr)
		default:
		}
		return d.Stdout.String() != ""
	})
	return d
}

func (d *disk) mounts() string { return fmt.Sprintf("/proc/%d/ns/mnt", d.Cmd.Process.Pid) }

// others is the path of a file that others have on it, from here.
func (d *disk) others() string {
	return fmt.Sprintf("/proc/%d/root%s", d.Cmd.Process.Pid, filepath.Join(d.dir, "others"))
}

// fill leaves no block free.
func (d *disk) fill(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(d.others(), bytes.Repeat([]byte("x"), 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a megabyte on a disk of 64 KiB: %v", err)
	}
}

func (d *disk) free(t *testing.T) {
	t.Helper()
	if err := os.Remove(d.others()); err != nil {
		t.Fatal(err)
	}
}

// An agent that cannot save what its tests use of a link's budget would not know of it after
// a restart: it runs none of them until it can, and says so.
func TestBudgetOfTheDayIsNotForgottenOnAFullDisk(t *testing.T) {
	s := newSite(t, overSlow())
	s.disk = newDisk(t, s.network.Client, filepath.Join(s.dir, "state-"+s.network.Client.Name))
	config := "links: [{name: uplink, budget: 500MB}]\nreports: {dir: reports}\npaths:\n" +
		s.path("a", "duration: 1s", "rate: {forward: 2Mbit, reverse: 2Mbit}")
	used := func(a *agent) float64 { return sum(a.metrics(t, "oneway_data_budget_used_bytes"), `link="uplink"`) }
	saved := func(a *agent) float64 { return sum(a.metrics(t, "oneway_data_budget_saved"), `kind="links"`) }
	runs := func(a *agent, labels ...string) float64 {
		return sum(a.metrics(t, "oneway_probe_runs_total"), labels...)
	}

	begin := func() *agent { // it serves before it has put its configuration in force
		a := s.agent(t, config)
		program.Eventually(t, "budgets are told", func() bool { return len(a.metrics(t, "oneway_data_budget_used_bytes")) > 0 })
		return a
	}

	a := begin()
	if n := saved(a); n != 1 {
		t.Errorf("on a disk with room the budget is saved: %v", n)
	}
	program.Eventually(t, "a run", func() bool { return runs(a, `"completed"`) == 1 && used(a) > 0 })
	first := used(a)
	a.Kill(t)

	s.disk.fill(t)
	sent := len(s.drained(t))
	a = begin()
	if got := used(a); got < first {
		t.Errorf("after a restart on a full disk %v octets of the day are known, %v were used", got, first)
	}
	program.Eventually(t, "a run is refused", func() bool { return runs(a) >= 1 })
	if n := runs(a, `result="failed"`, `reason="unsaved"`); n != runs(a) {
		t.Errorf("runs on a full disk: %v", a.metrics(t, "oneway_probe_runs_total"))
	}
	if n := saved(a); n != 0 {
		t.Errorf("on a full disk the budget is saved: %v", n)
	}
	if n := len(s.drained(t)) - sent; n != 0 {
		t.Errorf("%d packets were sent on a full disk", n)
	}
	if n := strings.Count(a.Stderr.String(), "is not kept"); n != 1 {
		t.Errorf("told %d times", n)
	}

	s.disk.free(t)
	program.Eventually(t, "it is saved again", func() bool { return saved(a) == 1 })
	program.Eventually(t, "a run", func() bool { return runs(a, `"completed"`) == 1 && used(a) > first })
	second := used(a)
	a.Kill(t)
	a = begin()
	if got := used(a); got < second {
		t.Errorf("%v octets of the day are known after a restart, %v were used", got, second)
	}
}
