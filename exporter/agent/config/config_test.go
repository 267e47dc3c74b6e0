package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oneway.example/exporter/core/option"
	"oneway.example/tests/badfiles"
)

// TestBadFilesStateTheExpectation reads the expected messages from the last lines of the files, where they are without the
// name of the file.
func TestBadFilesStateTheExpectation(t *testing.T) {
	badfiles.Run(t, 21, func(t *testing.T, name string) error {
		c, err := Load(name)
		if err == nil {
			err = c.Check()
		}
		if _, ok := errors.AsType[Problems](err); !ok {
			t.Fatalf("error is %v, want Problems", err)
		}
		return err
	})
}

func TestAllFeaturesAreRead(t *testing.T) {
	got, err := Load("testdata/good/all.yml")
	if err != nil {
		t.Fatal(err)
	}
	if found := got.Check(); found != nil {
		t.Fatal(found)
	}
	if got.Version != 1 {
		t.Errorf("the version is %d, want 1", got.Version)
	}
	probes := []Probe{{Name: "stamp", Type: "stamp"}, {Name: "slow", Type: "stamp"}}
	want := []Path{
		{Name: "one", Peer: "192.0.2.1", Probes: probes},
		{Name: "two", Peer: "[2001:db8::1]:8620", Probes: probes},
		{Name: "three", Peer: "_host.example.net:1862", Probes: probes},
		{Name: "four", Peer: "2001:db8::1", Probes: probes},
	}
	if diff := cmp.Diff(want, got.Paths, cmpopts.IgnoreTypes(Section{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var o struct {
		Interval time.Duration `yaml:"interval"`
		KeyFile  string        `yaml:"key_file"`
	}
	if err := got.Paths[2].Probes[1].Options.Decode(&o); err != nil {
		t.Fatal(err)
	}
	if o.Interval != 10*time.Second || o.KeyFile != "testdata/good/secret.key" {
		t.Errorf("merged options are %+v", o)
	}
	var file string
	if err := got.CalibrationFile.Decode(&file); err != nil || file != "testdata/good/stamps.yml" {
		t.Errorf("calibration file is %q, %v", file, err)
	}
}

func TestLinksOfAPathAreAWordOrAListOfDifferentNames(t *testing.T) {
	for text, want := range map[string]string{
		"uplink":           "",
		"[uplink, core/1]": "",
		"[]":               "",
		"''":               `x.yml:1:56: paths[0].link is ""; it must begin with a letter`,
		"[up link]":        `x.yml:1:56: paths[0].link is "up link"; it must begin with a letter`,
		"[a, '-']":         `x.yml:1:60: paths[0].link[1] is "-"; it must begin with a letter`,
		"[a, b, a]":        `x.yml:1:63: paths[0].link[2] is "a" for the second time; name each link once`,
		"{a: b}":           `x.yml:1:56: paths[0].link `,
	} {
		c, err := Parse("x.yml", []byte("paths: [{name: a, peer: b, probes: [{type: c}],  link: "+text+"}]"))
		got := ""
		if err != nil {
			got = err.Error()
		} else if found := c.Check(); found != nil {
			got = found.Error()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" || strings.Contains(got, "\n") {
			t.Errorf("%s: %s\nwant %s", text, got, want)
		}
	}
}

func TestSectionReportsItsKeys(t *testing.T) {
	c, err := Parse("x.yml", []byte("paths: []\nreflector: {rate_limit: {burst: 0}}\nlinks: [{name: a}]"))
	if err != nil {
		t.Fatal(err)
	}
	if !c.Reflector.Given() || c.LoadServer.Given() || !c.Reflector.Has("rate_limit.burst") || c.Reflector.Has("rate_limit.b") || c.Clock.Has("source") {
		t.Error("Has reports a present key as absent, or the reverse")
	}
	if !c.Links.Has("[0].name") || c.Links.Has("[1]") || c.Links.Has("name") {
		t.Error("Has reports a present list item as absent, or the reverse")
	}
}

func TestSeveralStructsHaveTheKeysOfAll(t *testing.T) {
	c, err := Parse("x.yml", []byte("clock: {one: 1, two: 2, further: 3}"))
	if err != nil {
		t.Fatal(err)
	}
	var one struct {
		One int `yaml:"one"`
	}
	var two struct {
		Two int `yaml:"two"`
	}
	err = c.Clock.DecodeAll(&one, &two)
	if want := `x.yml:1:25: clock.further is unknown; the keys here are one, two`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if one.One != 1 || two.Two != 2 {
		t.Errorf("got %+v, %+v", one, two)
	}
}

func TestProblemsOfAnOwnerHaveTheirPlace(t *testing.T) {
	c, err := Parse("x.yml", []byte("clock: {one: 1, two: [2, 2]}"))
	if err != nil {
		t.Fatal(err)
	}
	found := c.Clock.Problems(errors.Join(
		option.Between("one", 1, 2, 3),
		option.Between("two[0]", 2, 2, 3),
		&option.Error{Key: "two[1]", Problem: "is there twice", At: "two"},
		fmt.Errorf("clock: %w", os.ErrNotExist),
	))
	want := `x.yml:1:8: clock cannot be used: clock: file does not exist
x.yml:1:14: clock.one is 1; it must be between 2 and 3
x.yml:1:22: clock.two[1] is there twice`
	if got := found.Sort().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestListOfPathsMayBeEmpty(t *testing.T) {
	c, err := Parse("x.yml", []byte("paths: []"))
	if err != nil || c.Paths == nil || len(c.Check()) > 0 {
		t.Errorf("an explicit empty list of paths: %v", err)
	}
}

func TestMissingFileIsNamed(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "absent.yml"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "absent.yml") {
		t.Errorf("error is %v", err)
	}
}

// manyPaths is a file with n paths.
func manyPaths(n int) []byte {
	var b strings.Builder
	b.WriteString("paths:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - name: path-%d\n    peer: host-%d.example.net:862\n    probes:\n      - type: stamp\n        interval: 20ms\n        dscp: 46\n", i, i)
	}
	return []byte(b.String())
}

func TestTenThousandPathsAreRead(t *testing.T) {
	c, err := Parse("many.yml", manyPaths(10_000))
	if err != nil || len(c.Check()) > 0 {
		t.Fatal(err)
	}
	if len(c.Paths) != 10_000 || c.Paths[9999].Name != "path-9999" {
		t.Errorf("%d paths", len(c.Paths))
	}
}

func BenchmarkParseTenThousandPaths(b *testing.B) {
	content := manyPaths(10_000)
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		c, err := Parse("many.yml", content)
		if err != nil || len(c.Check()) > 0 {
			b.Fatal(err)
		}
	}
}

func TestAliasBombIsRefused(t *testing.T) {
	content := "reflector: {}\npaths:\n  - &p {name: a, peer: h, probes: &q [" + strings.Repeat("{type: s},", 3000) + "]}\n" +
		strings.Repeat("  - {name: b, peer: h, probes: *q}\n", 3000)
	_, err := Parse("bomb.yml", []byte(content))
	if err == nil || !strings.Contains(err.Error(), "check for aliases in aliases") {
		t.Errorf("9,000,000 probes from 150 kB were read; error is %.200v", err)
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	for _, s := range slips {
		f.Add([]byte(s.file))
	}
	f.Add([]byte("paths:\n  - name: A\n    peer: A0\n    probes: &standard\n      - !00000 {type: A}\n  - {name: B,peer: \"\",probes: *standard}"))
	f.Add([]byte("- &a\n- # b\n- - c\n-\n? d\n]\n'\n\"\\"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if bytes.Contains(content, []byte("include")) {
			return // it reads other files
		}
		c, err := Parse("fuzz.yml", content)
		if err == nil {
			if found := c.Check(); len(found) > 0 {
				err = found
			}
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz.yml:") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, p := range c.Paths {
			if p.Name == "" || p.Peer == "" || len(p.Probes) == 0 || seen[p.Name] {
				t.Fatalf("accepted %+v", p)
			}
			seen[p.Name] = true
			for _, probe := range p.Probes {
				var o struct {
					Interval time.Duration `yaml:"interval"`
					List     []string      `yaml:"list"`
				}
				_ = probe.Options.Decode(&o)
				if a, b := probe.Options.Fingerprint(), probe.Options.Fingerprint(); a != b {
					t.Fatal("two fingerprints of the same options differ")
				}
			}
		}
	})
}

// The limit of values is for aliases: a file of many paths has as many values as it has lines.
func TestHundredThousandPathsAreAccepted(t *testing.T) {
	const n = 100_000
	var text strings.Builder
	text.WriteString("paths:\n")
	for i := range n {
		fmt.Fprintf(&text, "- {name: p%d, peer: h, labels: {site: a, region: b}, probes: [{type: stamp}]}\n", i)
	}
	c, err := Parse("many.yml", []byte(text.String()))
	if err != nil || len(c.Paths) != n || c.Paths[n-1].Labels["region"] != "b" {
		t.Fatalf("%d paths, %.300v", len(c.Paths), err)
	}
}
