package agent

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/probe/quota"
	"oneway.example/exporter/probe/report"
	"oneway.example/tests/await"
)

// TestTwoAgentsDoNotShareAStateDirectory: the second one does not start with it, or keeps its configuration at a reload.
func TestTwoAgentsDoNotShareAStateDirectory(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	first := newRig(t, newFake(), noPaths+"state_dir: "+dir+"\n")
	want := "agent: state_dir " + dir + ": another running agent uses it"
	second, err := New(Options{ConfigFile: first.file, Types: typesWith(newFake())})
	if err != nil {
		t.Fatalf("the check of the configuration: %v", err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the second agent: %v, want %q", err, want)
	}
	third := newRig(t, newFake(), noPaths+"state_dir: "+other+"\n")
	third.write(noPaths + "state_dir: " + dir + "\n")
	if err := third.Reload(); err == nil || !strings.HasPrefix(err.Error(), want) || third.inForce.shared.stateDir != other {
		t.Errorf("a reload: %v, state_dir %s", err, third.inForce.shared.stateDir)
	}
	if err := first.Reload(); err != nil {
		t.Errorf("a reload with the same directory: %v", err)
	}
	first.stop()
	if err := third.Reload(); err != nil || third.inForce.shared.stateDir != dir {
		t.Errorf("after the end of the first agent: %v, state_dir %s", err, third.inForce.shared.stateDir)
	}
}

// TestRemovedStateDirectoryIsLockedAgain: it did not exist at the start, and is then removed, renamed and replaced. Meanwhile and
// afterwards the agent keeps its usage of quotas and its runs.
func TestRemovedStateDirectoryIsLockedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "state")
	var said await.Text
	r := newRigWith(t, newFake(), noPaths+"links: [{name: uplink, quota_bytes: 1000}]\nstate_dir: "+dir+"\n", func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&said, nil))
	})
	used, err := r.shared.links.Reserve("uplink", 600)
	if err != nil {
		t.Fatal(err)
	}
	used.Settle(500)
	h := report.Header{ID: report.NewID(time.Now(), rand.New(rand.NewPCG(1, 1))), Path: "p", Probe: "test"}
	if err := r.shared.reports.Write(h, "body"); err != nil {
		t.Fatal(err)
	}
	locked := func() bool {
		own, err := lockState(dir)
		if err == nil {
			_ = own.Close()
		}
		return errors.Is(err, errStateTaken)
	}
	if !locked() {
		t.Error("a directory that did not exist at the start is not locked")
	}
	for i, damage := range []func() error{
		func() error { return os.RemoveAll(dir) },
		func() error { return os.RemoveAll(filepath.Dir(dir)) },
		func() error { return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o750)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		await.That(t, "the directory is locked and has the usage", func() bool {
			if strings.Count(said.String(), "directory of state was removed") <= i || !locked() {
				return false
			}
			kept := quota.New(quota.Options{File: filepath.Join(dir, linksFile)})
			return kept.Usage("uplink", 1000).Used == 500
		})
	}
	if runs := r.shared.reports.List(); len(runs) != 1 || runs[0].ID != h.ID || runs[0].Report != "" {
		t.Errorf("runs %+v, want one without a report", runs)
	}
}

// TestStateDirectoryOfAnotherAgentIsNotWritten: the directory was removed, and another agent has started with it before this one has noticed.
func TestStateDirectoryOfAnotherAgentIsNotWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var said await.Text
	r := newRigWith(t, newFake(), noPaths+"links: [{name: uplink, quota_bytes: 1000}]\nstate_dir: "+dir+"\n", func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&said, nil))
	})
	r.reloading.Lock() // it does not look
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	other, err := lockState(dir)
	r.reloading.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	r.wants("oneway_data_quota_saved", "links", 0)
	if _, err := r.shared.links.Reserve("uplink", 1); !errors.Is(err, errStateTaken) {
		t.Errorf("a reservation: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	r.wants("oneway_data_quota_saved", "links", 1)
	if n := strings.Count(said.String(), "directory of state cannot be used"); n != 1 {
		t.Errorf("told %d times, want once:\n%s", n, said.String())
	}
}
