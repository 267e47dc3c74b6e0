package faults

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// disk is a file system of a few blocks, in the mount namespace of a
// process.
type disk struct {
	*program.Program
	dir string
}

// newDisk mounts one on the state directory of the site's agent.
func newDisk(t *testing.T, s *site) *disk {
	t.Helper()
	host := s.Network.Client
	dir := filepath.Join(s.Dir, "state-"+host.Name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &disk{dir: dir}
	d.Program = program.Start(t, host, "unshare", "--mount", "sh", "-c", `mount -t tmpfs -o size=64k tmpfs "$0" && echo mounted && exec sleep 600`, dir)
	program.Eventually(t, "the disk is mounted", func() bool {
		select {
		case <-d.Done:
			t.Fatalf("no disk: %s", &d.Stderr)
		default:
		}
		return d.Stdout.String() != ""
	})
	s.Mounts = fmt.Sprintf("/proc/%d/ns/mnt", d.Cmd.Process.Pid)
	return d
}

// at returns the path of a file on it, in this mount namespace.
func (d *disk) at(name string) string {
	return fmt.Sprintf("/proc/%d/root%s", d.Cmd.Process.Pid, filepath.Join(d.dir, name))
}

// others is a file that uses the space.
func (d *disk) others() string { return d.at("others") }

// leave frees some bytes.
func (d *disk) leave(t *testing.T, bytes int64) {
	t.Helper()
	info, err := os.Stat(d.others())
	if err == nil {
		err = os.Truncate(d.others(), info.Size()-bytes)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fill uses all blocks.
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

// Without a saved usage of the day a restart would renew the quota: the agent runs no test with a quota
// until the usage is saved, and reports that.
func TestQuotaOfTheDayIsNotForgottenOnAFullDisk(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	space := newDisk(t, s)
	config := "links: [{name: uplink, quota_bytes: 500MB}]\nreports: {dir: reports}\npaths:\n" +
		s.Path("a", "duration: 1s", "rate: {forward: 2Mbit, reverse: 2Mbit}")
	used := func(a *loadsite.Agent) float64 {
		return loadsite.Sum(a.Metrics(t, "oneway_data_quota_used_bytes"), `link="uplink"`)
	}
	saved := func(a *loadsite.Agent) float64 {
		return loadsite.Sum(a.Metrics(t, "oneway_data_quota_saved"), `kind="links"`)
	}
	runs := func(a *loadsite.Agent, labels ...string) float64 {
		return loadsite.Sum(a.Metrics(t, "oneway_probe_runs_total"), labels...)
	}

	begin := func() *loadsite.Agent { // it serves before its configuration is applied
		a := s.Agent(t, config)
		program.Eventually(t, "the metrics of quotas exist", func() bool { return len(a.Metrics(t, "oneway_data_quota_used_bytes")) > 0 })
		return a
	}

	a := begin()
	if n := saved(a); n != 1 {
		t.Errorf("with free space oneway_data_quota_saved is %v", n)
	}
	program.Eventually(t, "a run", func() bool { return runs(a, `"completed"`) == 1 && used(a) > 0 })
	first := used(a)
	a.Kill(t)

	space.fill(t)
	sent := len(s.Drained(t))
	a = begin()
	if got := used(a); got < first {
		t.Errorf("after a restart on a full disk %v bytes of the day are counted, want %v", got, first)
	}
	program.Eventually(t, "a run is refused", func() bool { return runs(a) >= 1 })
	if n := runs(a, `result="failed"`, `reason="unsaved"`); n != runs(a) {
		t.Errorf("runs on a full disk: %v", a.Metrics(t, "oneway_probe_runs_total"))
	}
	if n := saved(a); n != 0 {
		t.Errorf("on a full disk oneway_data_quota_saved is %v", n)
	}
	if n := len(s.Drained(t)) - sent; n != 0 {
		t.Errorf("%d packets were sent on a full disk", n)
	}
	if n := strings.Count(a.Stderr.String(), "is not kept"); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}

	space.free(t)
	program.Eventually(t, "it is saved again", func() bool { return saved(a) == 1 })
	program.Eventually(t, "a run", func() bool { return runs(a, `"completed"`) == 1 && used(a) > first })
	second := used(a)
	a.Kill(t)
	a = begin()
	if got := used(a); got < second {
		t.Errorf("%v bytes of the day are counted after a restart, want %v", got, second)
	}
}

// If the disk is full while an agent writes the report of a run, only that report is lost: no earlier
// report and no run. No partial file is left, and the log has two lines.
func TestFullDiskCostsTheReportOfTheRunAlone(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	space := newDisk(t, s)
	a := s.Agent(t, "paths:\n"+s.Path("a", "duration: 1s", "rate: {forward: 2Mbit, reverse: 2Mbit}"))
	completed := func() float64 { return loadsite.Sum(a.Metrics(t, "oneway_probe_runs_total"), `"completed"`) }
	reports := func() map[string]string {
		all := map[string]string{}
		entries, err := os.ReadDir(space.at("reports"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			content, err := os.ReadFile(filepath.Join(space.at("reports"), e.Name()))
			if err != nil && !errors.Is(err, os.ErrNotExist) { // a file being written may be removed
				t.Fatal(err)
			}
			all[e.Name()] = string(content)
		}
		return all
	}
	said := func(part string) int { return strings.Count(a.Stderr.String(), part) }

	program.Eventually(t, "a run", func() bool { return completed() == 1 })
	before := reports()
	const free = 4096 // so that the write of a report begins
	for name, content := range before {
		if len(content) <= free || !strings.HasSuffix(name, ".json.gz") {
			t.Fatalf("the report %s has %d bytes; want more than %d", name, len(content), free)
		}
	}
	space.fill(t)
	space.leave(t, free)
	program.Eventually(t, "three more runs", func() bool { return completed() == 4 })
	if diff := cmp.Diff(before, reports()); diff != "" || len(before) != 1 {
		t.Errorf("earlier reports after the disk was full (-want +got):\n%.1000s", diff)
	}
	var status struct {
		Reports struct {
			Runs   int    `json:"runs"`
			Failed int    `json:"failed_writes"`
			Error  string `json:"error"`
		} `json:"reports"`
	}
	if err := json.Unmarshal(a.Get(t, "/api/v1/status"), &status); err != nil {
		t.Fatal(err)
	}
	if r := status.Reports; r.Runs != 4 || r.Failed != 3 || !strings.Contains(r.Error, "no space left") {
		t.Errorf("the status is %+v", r)
	}
	if n := said("Reports cannot be written"); n != 1 || said("Report not written") != 0 {
		t.Errorf("the first failure is logged %d times, want once", n)
	}

	space.free(t)
	program.Eventually(t, "a report is written again", func() bool { return len(reports()) == 2 && completed() == 5 })
	for name, content := range reports() {
		unpacked, err := gzip.NewReader(strings.NewReader(content))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := json.NewDecoder(unpacked).Decode(&map[string]any{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := said("Reports are written again"); n != 1 {
		t.Errorf("the first success is logged %d times, want once", n)
	}
	if used := said("is not kept"); used != said("is kept again") || used > 1 {
		t.Errorf("a failure to save the usage is logged %d times", used)
	}
}
