package agent

import (
	"os"
	"path/filepath"
	"testing"

	"oneway.example/exporter/core/metric"
)

// TestPathsHaveThePairOfSites: by the key of this host, else by its mesh; a path within the site is without it, and a reload changes it.
func TestPathsHaveThePairOfSites(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts.yml")
	if err := os.WriteFile(hosts, []byte("- {name: a, address: 192.0.2.1, labels: {site: seoul}}\n- {name: b, address: 192.0.2.2, labels: {site: berlin}}\n- {name: c, address: 192.0.2.3, labels: {site: seoul}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	meshed := "clock: {source: none}\nmesh: {hosts_file: " + hosts + ", self: a, probes: [{type: fake}]}\n"
	r := newRig(t, newFake(), meshed)
	for _, c := range []struct{ config, toB, toC string }{
		{meshed, "berlin - seoul", ""},
		{"site: hamburg\n" + meshed, "berlin - hamburg", "hamburg - seoul"},
	} {
		r.write("version: 1\n" + c.config)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{"a-to-b": c.toB, "a-to-c": c.toC} {
			if want == "" {
				continue
			}
			if _, found := r.value(metric.PathLabels.Name, path, want); !found {
				t.Errorf("%s: path %s does not have the pair %q", c.config, path, want)
			}
		}
		if c.toC == "" {
			for _, pair := range []string{"seoul - seoul", "hamburg - seoul"} {
				if _, found := r.value(metric.PathLabels.Name, pair); found {
					t.Errorf("%s: a path has the pair %q", c.config, pair)
				}
			}
		}
	}
}
