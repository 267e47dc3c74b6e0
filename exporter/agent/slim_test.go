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
	check := func(yaml string) string { return problems(t, yaml) }
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

// TestKeysWithoutEffectOnATypeAreErrorsAtTheirPlace: each such key of each type.
func TestKeysWithoutEffectOnATypeAreErrorsAtTheirPlace(t *testing.T) {
	tested := 0
	for _, kind := range probes.All() {
		sharing, ok := kind.(probe.Sharing)
		if !ok {
			continue
		}
		for _, key := range sharing.UnusedKeys() {
			value := map[string]string{"checksum": "true", "working_delay_interval": "100ms"}[key] // the default is as wrong
			got := problems(t, "paths: [{name: a, peer: 192.0.2.1, probes: [{type: "+kind.Name()+", every: 1h, "+key+": "+value+"}]}]")
			if want := "paths[0].probes[0]." + key + " has no effect on probes of type " + kind.Name() + "; remove it"; !strings.Contains(got, want) {
				t.Errorf("%s\nwant %s", got, want)
			}
			tested++
		}
	}
	if tested < 2 {
		t.Errorf("%d keys are tested, want those of tcp, tcp_sweep and others", tested)
	}
	if got := problems(t, "paths: [{name: a, peer: 192.0.2.1, probes: [{type: train, every: 1h, checksum: false}]}]"); strings.Contains(got, "no effect") {
		t.Error(got)
	}
}

// problems returns those of a configuration; empty: it has none.
func problems(t *testing.T, yaml string) string {
	t.Helper()
	file := t.TempDir() + "/oneway.yml"
	if err := os.WriteFile(file, []byte("version: 1\nclock: {source: none}\n"+yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Check(Options{ConfigFile: file, Types: typesWith(probes.All()...)}); err != nil {
		return err.Error()
	}
	return ""
}
