package agent

import (
	"os"
	"strings"
	"testing"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes"
)

// TestKeysWithoutEffectInProfileSlimAreErrorsAtTheirPlace: of the probe's own profile, its path's, or the file's.
func TestKeysWithoutEffectInProfileSlimAreErrorsAtTheirPlace(t *testing.T) {
	const effect = " has no effect with profile slim; remove it, or use profile full for this probe"
	check := func(yaml string) string {
		file := t.TempDir() + "/oneway.yml"
		if err := os.WriteFile(file, []byte("version: 1\nclock: {source: none}\n"+yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Check(file, probes.All()); err != nil {
			return err.Error()
		}
		return ""
	}
	for yaml, want := range map[string]string{
		"profile: slim\npaths: [{name: a, peer: 192.0.2.1, probes: [{type: stamp, codecs: [G.711]}]}]":                                                         ":4:67: paths[0].probes[0].codecs" + effect,
		"paths: [{name: a, peer: 192.0.2.1, profile: slim, probes: [{type: stamp, playout: [fixed]}]}]":                                                        ":3:83: paths[0].probes[0].playout" + effect,
		"paths: [{name: a, peer: 192.0.2.1, probes: [{type: saturation, profile: slim, every: 1h, rate: {forward: 1Mbit, reverse: 1Mbit}, elapsed_bins: 3}]}]": "probes[0].elapsed_bins" + effect,
	} {
		if got := check(yaml); !strings.Contains(got, want) {
			t.Errorf("%s\n%s\nwant %s", yaml, got, want)
		}
		if got := check(strings.ReplaceAll(yaml, "slim", "full")); strings.Contains(got, effect) {
			t.Errorf("%s with profile full: %s", yaml, got)
		}
	}
	for _, kind := range probes.All() {
		if full, ok := kind.(probe.FullOnly); ok && len(full.FullKeys()) > 0 && kind.Name() != "stamp" && kind.Name() != "saturation" {
			t.Errorf("%s is not tested", kind.Name())
		}
	}
}
