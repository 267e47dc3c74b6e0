package main

import (
	"os"
	"path/filepath"
	"testing"

	"oneway.example/exporter/core/metric"
)

// TestCommittedListsAreCurrent has the arguments of the go:generate lines of the plugins.
func TestCommittedListsAreCurrent(t *testing.T) {
	for plugin, groups := range map[string][]string{"oneway": nil, "oneway_clock": {metric.TitleClock, metric.TitlePulse}} {
		from, dir := filepath.Join("../../plugins/inputs", plugin), t.TempDir()
		var want []byte
		for _, name := range []string{"sample.conf", "README.md"} {
			var err error
			if want, err = os.ReadFile(filepath.Join(from, name)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), want, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(dir, groups); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "README.md")); err != nil || string(got) != string(want) {
			t.Errorf("README.md of %s is not current: run go generate ./... (%v)", plugin, err)
		}
	}
}
