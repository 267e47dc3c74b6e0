package agent

import (
	"os"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
)

// TestProfileIsTheNearestOneThatIsSet: of the probe, the path or the file.
func TestProfileIsTheNearestOneThatIsSet(t *testing.T) {
	fake := newFake()
	r := newRig(t, fake, `
profile: slim
paths:
  - {name: a, peer: a, probes: [{type: fake}]}
  - {name: b, peer: b, profile: full, probes: [{type: fake}, {type: fake, name: small, profile: slim}]}
`)
	want := []metric.Profile{metric.Slim, metric.Full, metric.Slim}
	for i, j := range r.inForce.jobs {
		if j.profile != want[i] {
			t.Errorf("%s of %s: %v, want %v", j.target.Probe, j.target.Path, j.profile, want[i])
		}
	}
	if got := incidentPaths(r.inForce); len(got) != 1 || got[0].Path != "b" || got[0].Probe != "fake" {
		t.Errorf("incidents are recorded for %v, want the full one only", got)
	}
}

func TestUnknownProfileIsRefusedAtItsPlace(t *testing.T) {
	for yaml, want := range map[string]string{
		"profile: tiny\npaths: [{name: a, peer: a, probes: [{type: fake}]}]":    `:1:10: profile is "tiny"; it must be full or slim`,
		"paths:\n- {name: a, peer: a, profile: tiny, probes: [{type: fake}]}":   `:2:31: paths[0].profile is "tiny"`,
		"paths:\n- {name: a, peer: a, probes: [{type: fake, profile: tiny}]}\n": `:2:53: paths[0].probes[0].profile is "tiny"`,
	} {
		file := t.TempDir() + "/oneway.yml"
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Check(Options{ConfigFile: file, Types: typesWith(newFake())}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}

// TestNewProfileIsANewProber: obsolete series must end.
func TestNewProfileIsANewProber(t *testing.T) {
	const full = "paths:\n- {name: a, peer: a, probes: [{type: fake}]}\n"
	fake := newFake()
	r := newRig(t, fake, full)
	fake.expect(t, "start a")
	r.write("profile: slim\n" + full)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	fake.expect(t, "stop a", "start a")
}
