package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTargetsAreTheHostsOfAllMeshesOnce(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("hosts.yml", "- {name: seoul-1, address: seoul-1.example.net, labels: {site: seoul}}\n- {name: paris-1, address: \"[2001:db8:7::1]:8620\"}\n")
	file := write("oneway.yml", `
mesh:
  - {hosts_file: hosts.yml, self: seoul-1, probes: [{type: stamp}]}
  - {hosts_file: hosts.yml, self: seoul-1, shape: ring, prefix: r-, probes: [{type: stamp}]}
`)
	var out bytes.Buffer
	if err := printTargets(&out, file, 9862); err != nil {
		t.Fatal(err)
	}
	const want = `[
  {
    "targets": [
      "seoul-1.example.net:9862"
    ],
    "labels": {
      "__meta_oneway_host": "seoul-1",
      "__meta_oneway_label_site": "seoul"
    }
  },
  {
    "targets": [
      "[2001:db8:7::1]:9862"
    ],
    "labels": {
      "__meta_oneway_host": "paris-1"
    }
  }
]
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"clock: {source: none}":                                 "targets: " + filepath.Join(dir, "x.yml") + " has no mesh; it must have one, see exporter/doc/mesh.md",
		"mesh: {hosts_file: none.yml, probes: [{type: stamp}]}": filepath.Join(dir, "x.yml") + `:1:20: mesh.hosts_file is "none.yml"; ` + filepath.Join(dir, "none.yml") + " does not exist (relative names begin at the directory of x.yml)",
	} {
		if err := printTargets(&out, write("x.yml", text), 9862); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
