package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oneway.example/exporter/probe/quota"
	"oneway.example/exporter/probe/report"
	"oneway.example/tests/await"
)

const noPaths = "clock: {source: static, bound: 1ms}\npaths: []\n"

// wants waits for a gauge of a link.
func (r *rig) wants(name, link string, want float64) {
	r.t.Helper()
	await.That(r.t, name+" of "+link, func() bool { v, found := r.value(name, link); return found && v == want })
}

func TestQuotasArePublishedAndAReloadChangesThem(t *testing.T) {
	r := newRig(t, newFake(), noPaths+"links: [{name: uplink, quota_bytes: 1000}, {name: lab}]\n")
	r.wants("oneway_data_quota_limit_bytes", "uplink", 1000)
	r.wants("oneway_data_quota_used_bytes", "lab", 0)
	for _, name := range []string{"oneway_data_quota_limit_bytes", "oneway_data_quota_left_bytes"} {
		if v, found := r.value(name, "lab"); found {
			t.Errorf("%s of a link without a quota is %v", name, v)
		}
	}
	reservation, err := r.shared.links.Reserve("uplink", 600)
	if err != nil {
		t.Fatal(err)
	}
	r.wants("oneway_data_quota_left_bytes", "uplink", 400)
	reservation.Settle(500)
	r.wants("oneway_data_quota_left_bytes", "uplink", 500)
	r.wants("oneway_data_quota_used_bytes", "uplink", 500)

	r.write(noPaths + "links: [{name: uplink, quota_bytes: 400}]\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.wants("oneway_data_quota_limit_bytes", "uplink", 400)
	r.wants("oneway_data_quota_left_bytes", "uplink", 0)
	if _, found := r.value("oneway_data_quota_used_bytes", "lab"); found {
		t.Error("the removed link still has a series")
	}
	if _, err := r.shared.links.Reserve("uplink", 1); !errors.As(err, new(*quota.ExceededError)) {
		t.Errorf("a smaller, used-up quota still allows a reservation: %v", err)
	}
	r.stop()
	if _, found := r.value("oneway_data_quota_used_bytes", "uplink"); found {
		t.Error("the series is still there after the end of the agent")
	}
}

func TestReloadKeepsALinkInUse(t *testing.T) {
	r := newRig(t, newFake(), noPaths+"links: [{name: uplink}]\n")
	release, ok := r.shared.links.TryAcquire("uplink", "a/saturation")
	if !ok {
		t.Fatal("a free link cannot be taken")
	}
	r.write(noPaths)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if s := r.Status().Links; len(s) != 1 || s[0].Holder != "a/saturation" || s[0].Since.IsZero() {
		t.Errorf("status is %+v", s)
	}
	release()
	if s := r.Status().Links; len(s) != 0 {
		t.Errorf("the status has a link that is neither configured nor used: %+v", s)
	}
}

func TestStatePersistsOverARestart(t *testing.T) {
	dir := t.TempDir()
	yaml := noPaths + "links: [{name: uplink, quota_bytes: 1000}]\nstate_dir: " + dir + "\n"
	first := newRig(t, newFake(), yaml)
	reservation, err := first.shared.links.Reserve("uplink", 600)
	if err != nil {
		t.Fatal(err)
	}
	reservation.Settle(300)
	id := report.NewID(time.Unix(1e9, 0), nil)
	if err := first.Reports().Write(report.Header{ID: id, Path: "a", Result: "completed"}, nil); err != nil {
		t.Fatal(err)
	}
	first.stop()

	second := newRig(t, newFake(), yaml)
	second.wants("oneway_data_quota_used_bytes", "uplink", 300)
	s := second.Status().Reports
	if list := second.Reports().List(); s.Runs != 1 || len(list) != 1 || list[0].ID != id || s.Dir != filepath.Join(dir, "reports") {
		t.Errorf("status is %+v", s)
	}
	f, err := second.Reports().Open(id)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

func TestUnusableStateDirectoryStopsQuotasOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fake := newFake()
	r := newRig(t, fake, twoPaths+"links: [{name: uplink, quota_bytes: 1000}]\nstate_dir: "+file+"\n")
	fake.expect(t, "start a", "start b")
	r.wants("oneway_data_quota_saved", "links", 0)
	if _, err := r.shared.links.Reserve("uplink", 600); !errors.As(err, new(*quota.UnsavedError)) {
		t.Errorf("a quota that cannot be saved: %v", err)
	}
	if _, err := r.shared.links.Reserve("lab", 600); err != nil {
		t.Errorf("a link without a quota_bytes: %v", err)
	}
	id := report.NewID(time.Unix(1e9, 0), nil)
	if err := r.Reports().Write(report.Header{ID: id}, nil); err == nil {
		t.Error("a report was written below a file")
	}
	if s := r.Status().Reports; s.Failed != 1 || s.Error == "" || s.Runs != 1 {
		t.Errorf("status is %+v", s)
	}
	r.stop()
	fake.expect(t, "stop a", "stop b")
}

func TestCheckCreatesNoDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "oneway.yml")
	if err := os.WriteFile(file, []byte(noPaths+"state_dir: state\nlinks: [{name: l, quota_bytes: 5}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Check(Options{ConfigFile: file, Types: typesWith()}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
