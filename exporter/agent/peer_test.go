package agent

import (
	"os"
	"path/filepath"
	"testing"

	"oneway.example/exporter/probes"
)

// TestPeerThatAProbeRefusesIsReportedAtItsPlaceOnce: each probe type checks the peer, and two equal errors are one problem.
func TestPeerThatAProbeRefusesIsReportedAtItsPlaceOnce(t *testing.T) {
	for peer, problem := range map[string]string{
		"[2001:db8::1": "after the bracket that closes the address there may be a colon and a port, such as [2001:db8::1]:862",
		"h:99999":      "its port must be between 1 and 65535",
		"http://h/":    `it must be a host with an optional port, and no URL; write "h"`,
		"two hosts":    "it has a space in it; remove the space",
		"":             "missing; it must be a host, such as reflector.example.net or 192.0.2.1:862",
		"-h":           `"-h" is no host name: it must have letters, digits and hyphens between its dots, such as reflector.example.net`,
	} {
		for _, kinds := range []string{"{type: stamp}", "{type: stamp, name: other}, {type: stamp}", "{type: saturation, token_file: token, rate: {forward: 1Mbit, reverse: 1Mbit}}"} {
			file := filepath.Join(t.TempDir(), "x.yml")
			content := "paths:\n  - {name: fine, peer: h, probes: [{type: stamp}]}\n  - {name: a, peer: \"" + peer + "\", probes: [" + kinds + "]}\n"
			if err := os.WriteFile(filepath.Join(filepath.Dir(file), "token"), []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			want := file + ":3:21: paths[1].peer is \"" + peer + "\"; " + problem
			if peer == "" {
				want = file + ":3:21: paths[1].peer is " + problem
			}
			if _, _, err := Check(Options{ConfigFile: file, Types: typesWith(probes.All()...)}); err == nil || err.Error() != want {
				t.Errorf("%s of %q:\n%v\nwant\n%s", kinds, peer, err, want)
			}
		}
	}
}
