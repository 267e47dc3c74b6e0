package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/option"
)

// options parses a file with one probe with these options.
func options(t *testing.T, dir, yaml string) Section {
	t.Helper()
	text := "paths:\n  - name: p\n    peer: h\n    probes:\n      - type: t\n"
	for line := range strings.Lines(yaml) {
		text += "        " + line
	}
	c, err := Parse(filepath.Join(dir, "o.yml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c.Paths[0].Probes[0].Options
}

type sampleOptions struct {
	Interval time.Duration `yaml:"interval"`
	Size     uint8         `yaml:"size"`
	Gain     float64       `yaml:"gain"`
	Names    []string      `yaml:"names"`
	Quota    option.Bytes  `yaml:"quota_bytes"`
	Share    option.Ratio  `yaml:"share"`
	Nested   struct {
		Word string `yaml:"word"`
	} `yaml:"nested"`
	Pointer *int   `yaml:"pointer"`
	Secret  string `yaml:"secret_file"`
	hidden  int
	Ignored func() `yaml:"-"`
}

func TestOptionsAreDecodedOverTheirDefaults(t *testing.T) {
	o := options(t, "dir", "size: 7\ngain: 2\nnames: [a, b]\nquota_bytes: 64KiB\nshare: 5%\nnested: {word: w}\npointer: 3\nsecret_file: k\n")
	got := sampleOptions{Interval: time.Second, hidden: 1}
	if err := o.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Interval != time.Second || got.Size != 7 || got.Gain != 2 || len(got.Names) != 2 || got.Quota != 65536 ||
		got.Share != 0.05 || got.Nested.Word != "w" || *got.Pointer != 3 || got.Secret != filepath.Join("dir", "k") || got.hidden != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestOptionsAreStrict(t *testing.T) {
	for yaml, want := range map[string]string{
		"intervall: 1s\n":            `o.yml:6:9: paths[0].probes[0].intervall is unknown; did you mean "interval"?`,
		"secret: abc\n":              `o.yml:6:9: paths[0].probes[0].secret is unknown; did you mean "secret_file"?`,
		"hidden: 1\n":                `o.yml:6:9: paths[0].probes[0].hidden is unknown; the keys here are gain, interval, name, names, nested, pointer, profile, quota_bytes, secret_file, share, size, type`,
		"interval: soon\n":           `o.yml:6:19: paths[0].probes[0].interval is "soon"; it must be a duration with a unit, such as 20ms, 10s or 1h30m`,
		"size: 256\n":                `o.yml:6:15: paths[0].probes[0].size is 256; it is out of range`,
		"size: -1\n":                 `o.yml:6:15: paths[0].probes[0].size is -1; it is out of range`,
		"gain: .nan\n":               `o.yml:6:15: paths[0].probes[0].gain is .nan; it must be a number`,
		"names:\n- a\n- {b: c}\n":    `o.yml:8:11: paths[0].probes[0].names[1] is a mapping; it must be text`,
		"names: [[2001:db8::7]]\n":   `o.yml:6:17: paths[0].probes[0].names[0] is a list; it must be text: write "[2001:db8::7]", with the quotes`,
		"quota_bytes: much\n":        `o.yml:6:22: paths[0].probes[0].quota_bytes is "much"; it must be an amount of data, such as 1500B, 64KiB or 10MB`,
		"share: 110%\n":              `o.yml:6:16: paths[0].probes[0].share is "110%"; it must be between 0 and 1, or between 0% and 100%`,
		"nested: {wort: a}\n":        `o.yml:6:18: paths[0].probes[0].nested.wort is unknown; did you mean "word"?`,
		"pointer: {}\nsize: 1e400\n": "o.yml:6:18: paths[0].probes[0].pointer is a mapping; it must be a whole number\no.yml:7:15: paths[0].probes[0].size is \"1e400\"; it must be a whole number",
		"pointer: ~\n":               `o.yml:6:18: paths[0].probes[0].pointer is empty; give it a value or leave the key out`,
	} {
		err := options(t, "", yaml).Decode(new(sampleOptions))
		if err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", yaml, err, want)
		}
	}
}

func TestDecodeOfAMappingIntoAScalarIsAnError(t *testing.T) {
	var n int
	if err := options(t, "", "size: 1\n").Decode(&n); err == nil {
		t.Error("no error")
	}
}

func TestProblemHasThePlaceOfItsOption(t *testing.T) {
	o := options(t, "", "names: [a, b]\nnested:\n  word: w\n")
	for key, want := range map[string]string{
		"names[1]":    "o.yml:6:20: paths[0].probes[0].names[1] is wrong",
		"names[9]":    "o.yml:6:16: paths[0].probes[0].names[9] is wrong",
		"nested.word": "o.yml:8:17: paths[0].probes[0].nested.word is wrong",
		"nested.x":    "o.yml:8:11: paths[0].probes[0].nested.x is wrong",
		"absent":      "o.yml:5:9: paths[0].probes[0].absent is wrong",
		"type":        "o.yml:5:15: paths[0].probes[0].type is wrong",
	} {
		if got := o.Problem(key, "is wrong").Error(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", key, got, want)
		}
	}
}

func TestProblemOfTheFileHasThePlaceOfItsKey(t *testing.T) {
	c, err := Parse("o.yml", []byte("paths: []\nreflector:\n  key_file: k\n"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"key_file": "o.yml:3:13: reflector.key_file is wrong",
		"listen":   "o.yml:3:3: reflector.listen is wrong",
		"":         "o.yml:3:3: reflector is wrong",
	} {
		if got := c.Reflector.Problem(key, "is wrong").Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestFingerprintIsOfTheMeaning(t *testing.T) {
	dir := t.TempDir()
	base := options(t, dir, "interval: 1s\nnames: [a, b]\n").Fingerprint()
	for yaml, same := range map[string]bool{
		"names: [a, b] # order and comments\ninterval: 1s\n": true,
		"names:\n- \"a\"\n- b\ninterval: '1s'\n":             true,
		"interval: 1s\nnames: [b, a]\n":                      false,
		"interval: 2s\nnames: [a, b]\n":                      false,
		"interval: 1s\n":                                     false,
		"interval: 1s\nnames: [a, b]\nsize: 1\n":             false,
	} {
		if got := options(t, dir, yaml).Fingerprint() == base; got != same {
			t.Errorf("%q: same is %t, want %t", yaml, got, same)
		}
	}
}

func TestFingerprintChangesWithTheContentOfAFile(t *testing.T) {
	dir := t.TempDir()
	o := options(t, dir, "secret_file: key\n")
	absent := o.Fingerprint()
	seen := map[string]bool{absent: true}
	for _, content := range []string{"", "one", "two"} {
		if err := os.WriteFile(filepath.Join(dir, "key"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		print := o.Fingerprint()
		if seen[print] {
			t.Errorf("content %q has the fingerprint of an earlier content", content)
		}
		seen[print] = true
	}
}

// All options are either decoded or rejected with the place of each problem.
func FuzzOptions(f *testing.F) {
	f.Add("size: 7\ngain: 2\nnames: [a, b]\nquota_bytes: 64KiB\nshare: 5%\nnested: {word: w}\npointer: 3\nsecret_file: k\n")
	f.Add("nested: {word: [x]}\ninterval: 1h30m\nshare: 1e-3\n")
	f.Fuzz(func(t *testing.T, yaml string) {
		text := "paths:\n- name: p\n  peer: h\n  probes:\n      - type: t\n"
		for line := range strings.Lines(yaml) {
			text += "        " + line
		}
		c, err := Parse("o.yml", []byte(text))
		if err != nil || len(c.Paths) == 0 || len(c.Paths[0].Probes) == 0 {
			return
		}
		if err := c.Paths[0].Probes[0].Options.Decode(new(sampleOptions)); err != nil && !strings.HasPrefix(err.Error(), "o.yml:") {
			t.Errorf("%q: %v", yaml, err)
		}
	})
}
