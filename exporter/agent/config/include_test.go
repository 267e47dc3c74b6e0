package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// written writes files, each given as its name and its content, into a new directory.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const onePath = "paths: [{name: %s, peer: 192.0.2.1, probes: [{type: stamp, key_file: one.key}]}]\n"

func TestIncludedFilesAreJoined(t *testing.T) {
	dir := written(t, map[string]string{
		"main.yml":       "include: [conf.d, sites/*.yml, last.yml]\nreflector: {}\n" + fmt.Sprintf(onePath, "main"),
		"conf.d/b.yaml":  fmt.Sprintf(onePath, "b"),
		"conf.d/a.yml":   fmt.Sprintf(onePath, "a") + "clock: {source: none}\ndefaults: {stamp: {interval: 1s}}\n",
		"conf.d/.a.yml":  "[", // of an editor
		"conf.d/note.md": "[",
		"conf.d/off.yml": "# paths:\n",
		"sites/x.yml":    fmt.Sprintf(onePath, "x") + "include: more\ndefaults: {train: {every: 1h}}\n",
		"sites/more/y.yml": "mesh: {hosts_file: hosts.yml}\noutputs: [{type: influxdb}]\n" +
			fmt.Sprintf(onePath, "y"),
		"last.yml": "version: 1\n",
	})
	c, err := Load(filepath.Join(dir, "main.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range c.Paths {
		var o struct {
			KeyFile string `yaml:"key_file"`
		}
		if err := p.Probes[0].Options.Decode(&o); err != nil {
			t.Fatal(err)
		}
		file, _ := filepath.Rel(dir, o.KeyFile)
		got = append(got, p.Name+" "+file)
	}
	want := []string{"main one.key", "a conf.d/one.key", "b conf.d/one.key", "x sites/one.key", "y sites/more/one.key"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !c.Clock.Given() || !c.Reflector.Given() || c.LoadServer.Given() || len(c.Meshes) != 1 || len(c.Outputs) != 1 || len(c.Defaults) != 2 {
		t.Errorf("got %+v", c)
	}
}

func TestIncludeMayFindNothing(t *testing.T) {
	dir := written(t, map[string]string{"main.yml": "include: [conf.d, 'conf.d/*.yml']\npaths: []\n"})
	if err := os.Mkdir(filepath.Join(dir, "conf.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(filepath.Join(dir, "main.yml")); err != nil {
		t.Error(err)
	}
}

func TestErrorsOfSeveralFilesNameTheirPlaces(t *testing.T) {
	deep := map[string]string{"main.yml": "include: 0.yml"}
	for i := range 10 {
		deep[fmt.Sprintf("%d.yml", i)] = fmt.Sprintf("include: %d.yml", i+1)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"missing": {
			map[string]string{"main.yml": "include: a.yml\npaths: []"},
			`D/main.yml:1:10: include is "a.yml"; D/a.yml does not exist (relative names begin at the directory of main.yml)`,
		},
		"missing directory of a pattern": {
			map[string]string{"main.yml": "include: ['a/*.yml']\npaths: []"},
			`D/main.yml:1:11: include[0] is "a/*.yml"; D/a does not exist (relative names begin at the directory of main.yml)`,
		},
		"truncated": {
			map[string]string{"main.yml": "include: conf.d\npaths: []", "conf.d/a.yml": "", "conf.d/b.yml": "\ufeff\n", "conf.d/c.yml": "# none\n", "conf.d/d.yml": "{}"},
			"D/conf.d/a.yml: is empty; write its keys again, or a comment if it is empty on purpose\n" +
				"D/conf.d/b.yml: is empty; write its keys again, or a comment if it is empty on purpose",
		},
		"no words": {
			map[string]string{"main.yml": "include: {a: b}\npaths: []"},
			`D/main.yml:1:10: include is a mapping; it must be text or a list of texts`,
		},
		"key and syntax in files": {
			map[string]string{"main.yml": "include: conf.d\npath: []", "conf.d/a.yml": "\npath: []", "conf.d/b.yml": "paths: [", "conf.d/c.yml": "paths: 5"},
			"D/conf.d/a.yml:2:1: path is unknown; did you mean \"paths\"?\n" +
				"D/conf.d/b.yml:1:8: the bracket '[' is not closed; write ']' at its end\n" +
				"D/conf.d/c.yml:1:8: paths is 5; it must be a list, such as [{name: office-to-core, peer: \"[2001:db8::7]:862\"}]\n" +
				"D/main.yml:2:1: path is unknown; did you mean \"paths\"?",
		},
		"section twice": {
			map[string]string{"main.yml": "include: conf.d\nclock: {}\npaths: []", "conf.d/a.yml": "clock: {}"},
			`D/conf.d/a.yml:1:8: clock is given twice; the first is clock in D/main.yml:2`,
		},
		"default twice": {
			map[string]string{"main.yml": "include: conf.d\npaths: []", "conf.d/a.yml": "defaults: {stamp: {dscp: 1}}", "conf.d/b.yml": "\ndefaults: {stamp: {dscp: 1}}"},
			`D/conf.d/b.yml:2:19: defaults.stamp is given twice; the first is defaults.stamp in D/conf.d/a.yml:1`,
		},
		"path twice": {
			map[string]string{"main.yml": "include: conf.d\npaths: []", "conf.d/a.yml": fmt.Sprintf(onePath, "p"), "conf.d/b.yml": fmt.Sprintf(onePath, "p")},
			`D/conf.d/b.yml:1:16: paths[0].name is "p", which is also the name of paths[0] in D/conf.d/a.yml:1; names must differ`,
		},
		"itself": {
			map[string]string{"main.yml": "include: .\npaths: []"},
			`D/main.yml:1:10: include is "."; the file D/main.yml includes itself; name other files, or a directory without it`,
		},
		"loop": {
			map[string]string{"main.yml": "include: a.yml\npaths: []", "a.yml": "include: main.yml"},
			`D/a.yml:1:10: include is "main.yml"; the file D/main.yml includes itself; name other files, or a directory without it`,
		},
		"file twice": {
			map[string]string{"main.yml": "include: [a.yml, '*a.yml']\npaths: []", "a.yml": "clock: {}"},
			`D/main.yml:1:18: include[1] is "*a.yml"; the file D/a.yml is included already by D/main.yml:1; include it once`,
		},
		"depth": {deep, `D/7.yml:1:10: include is "8.yml"; this file is itself included, more than 7 files deep`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t, c.files)
			got, err := Load(filepath.Join(dir, "main.yml"))
			if err == nil {
				err = got.Check()
			}
			if found := strings.ReplaceAll(fmt.Sprint(err), dir, "D"); found != c.want {
				t.Errorf("got\n%s\nwant\n%s", found, c.want)
			}
		})
	}
}

func TestIncludedFilesAreLimitedTogether(t *testing.T) {
	comment := "#" + strings.Repeat(" ", maxFileBytes/2) + "\n"
	dir := written(t, map[string]string{"main.yml": "include: conf.d\npaths: []\n", "conf.d/a.yml": comment, "conf.d/b.yml": comment})
	_, err := Load(filepath.Join(dir, "main.yml"))
	if want := "conf.d/b.yml: it is larger than the limit of 64 MiB"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestConfigurationInUTF16IsRefused: its columns would be wrong, and the first letter of each key lost.
func TestConfigurationInUTF16IsRefused(t *testing.T) {
	for _, content := range []string{"\xFF\xFEp\x00", "\xFE\xFF\x00p"} {
		dir := written(t, map[string]string{"main.yml": content, "with.yml": "include: main.yml\npaths: []\n"})
		_, err := Load(filepath.Join(dir, "main.yml"))
		_, section := LoadSection(filepath.Join(dir, "main.yml"))
		_, included := Load(filepath.Join(dir, "with.yml"))
		for _, err := range []error{err, section, included} {
			if want := "main.yml: line 1: the text is UTF-16; save it as UTF-8"; err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
}

func rewrite(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPipeWithoutAWriterEndsNoReload: a read that waits without end would stop the agent's reloads and its end.
func TestPipeWithoutAWriterEndsNoReload(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for name, f := range map[string]func() error{
		"Load":        func() error { _, err := Load(pipe); return err },
		"LoadSection": func() error { _, err := LoadSection(pipe); return err },
		"Fingerprint": func() error {
			c, err := Parse(filepath.Join(dir, "main.yml"), []byte("reflector: {key_file: pipe}"))
			_ = c.Reflector.Fingerprint()
			return errors.Join(err, errors.New("nothing to report"))
		},
	} {
		go func() { done <- f() }()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s accepted an empty pipe", name)
			}
		case <-time.After(10 * time.Second): // much longer than reading takes
			t.Fatalf("%s waits for a writer", name)
		}
	}
}
