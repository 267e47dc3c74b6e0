package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// meshExample is a copy of the example of a mesh for one of its hosts.
func meshExample(t *testing.T, self string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../deploy/mesh")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "oneway.yml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(string(text), "self: auto\n  shape", "self: "+self+"\n  shape", 1)
	if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestExampleOfAMeshHasThePathsOfEachHost(t *testing.T) {
	for self, want := range map[string]string{
		"ship-1": `F: ok: 4 paths (3 of a mesh), 7 probes, reflector
PATH               PEER                     PROBES             LINKS      LABELS
provider           reflector.example.com    stamp              -          site=provider
ship-1-to-seoul-1  seoul-1.example.net      stamp,best_effort  satellite  region=asia,site=seoul
ship-1-to-busan-1  192.0.2.17               stamp,best_effort  satellite  region=asia,site=busan
ship-1-to-paris-1  2001:db8:7::1            stamp,best_effort  satellite  region=europe,site=paris
`,
		"paris-2": `F: ok: 2 paths (1 of a mesh), 3 probes, reflector
PATH                PEER                     PROBES             LINKS   LABELS
provider            reflector.example.com    stamp              -       site=provider
paris-2-to-paris-1  2001:db8:7::1            stamp,best_effort  uplink  region=europe,site=paris
`,
	} {
		file := meshExample(t, self)
		var out, problems bytes.Buffer
		err := checkConfigs(&out, &problems, []string{file}, "", true)
		spaces := func(s string) string {
			var lines []string
			for line := range strings.Lines(s) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			return strings.Join(lines, "\n")
		}
		if got := strings.Replace(out.String(), file, "F", 1); err != nil || spaces(got) != spaces(want) {
			t.Errorf("%v %s\ngot\n%s\nwant\n%s", err, problems.String(), got, want)
		}
	}
}

// TestDefaultsOfProfileFullDoNotStopSlimProbes: only a key of the slim probe itself is an error.
func TestTableOfPathsFitsTheTerminal(t *testing.T) {
	t.Setenv("COLUMNS", "60")
	var out, problems bytes.Buffer
	if err := checkConfigs(&out, &problems, []string{meshExample(t, "ship-1")}, "", true); err != nil {
		t.Fatalf("%v %s", err, &problems)
	}
	_, table, _ := strings.Cut(out.String(), "\n")
	for line := range strings.Lines(table) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(table, "satellite") {
		t.Errorf("the table has not all columns:\n%s", table)
	}
}

func TestDefaultsOfProfileFullDoNotStopSlimProbes(t *testing.T) {
	for own, want := range map[string]string{
		"":             "",
		", codecs: []": ":2:74: paths[0].probes[0].codecs has no effect with profile slim; remove it, or use profile full for this probe\n",
	} {
		file := write(t, "defaults: {stamp: {codecs: [G.729]}}\npaths: [{name: a, peer: h, probes: [{type: stamp, profile: slim"+own+"}, {type: stamp, name: b}]}]")
		var out, problems bytes.Buffer
		_ = checkConfigs(&out, &problems, []string{file}, "", false)
		if got := strings.ReplaceAll(problems.String(), file, ""); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// TestDefaultsOfEachTypeAreChecked: a type reports unknown keys even though its other options are missing.
func TestDefaultsOfEachTypeAreChecked(t *testing.T) {
	for _, kind := range []string{"stamp", "saturation", "size_sweep", "train", "tcp", "tcp_sweep", "tcp_short", "message"} {
		for key, want := range map[string]string{"dscp: 1": "", "dcsp: 1": "defaults." + kind + ".dcsp is unknown"} {
			file := write(t, "reflector: {}\ndefaults: {"+kind+": {"+key+"}}\n")
			var out, problems bytes.Buffer
			_ = checkConfigs(&out, &problems, []string{file}, "", false)
			if got := problems.String(); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %s", kind, got, want)
			}
		}
	}
}
