package config

import (
	"fmt"
	"strings"
	"testing"
)

// refusal is the error of a file, or of its paths.
func refusal(t *testing.T, content string) string {
	t.Helper()
	c, err := Parse("x.yml", []byte(content))
	if err == nil {
		if found := c.Check(); len(found) > 0 {
			err = found
		}
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestEmptyPeerIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{name: a, peer: "", probes: [{type: c}]}`: `x.yml:1:25: paths[0].peer is missing; it must be a host, such as reflector.example.net or 192.0.2.1:862`,
		`{name: a, probes: [{type: c}]}`:           `x.yml:1:9: paths[0].peer is missing; it must be a host, such as reflector.example.net or 192.0.2.1:862`,
	} {
		if got := refusal(t, "paths: ["+text+"]"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestUnknownKeyIsNotMeantAsOneThatIsGiven(t *testing.T) {
	for text, want := range map[string]string{
		"{nam: a, peer: b, probes: [{type: c}]}":                   `paths[0].nam is unknown; did you mean "name"?`,
		"{name: a, nam: b, peer: b, probes: [{type: c}]}":          `paths[0].nam is unknown; the keys here are labels, link, name, peer, probes, profile`,
		"{name: a, rate: 5, peer: b, probes: [{type: c}]}":         `paths[0].rate is unknown; the keys here are labels, link, name, peer, probes, profile`,
		"{name: a, rate: 5, probes: [{type: c}]}":                  `paths[0].rate is unknown; the keys here are labels, link, name, peer, probes, profile`,
		"{name: a, proffle: full, peer: b, probes: [{type: c}]}":   `paths[0].proffle is unknown; did you mean "profile"?`,
		"{name: a, lxyk: full, peer: b, probes: [{type: c}]}":      `paths[0].lxyk is unknown; the keys here are labels, link, name, peer, probes, profile`,
		"{<<: {name: a}, nam: b, peer: b, probes: [{type: c}]}":    `paths[0].nam is unknown; the keys here are labels, link, name, peer, probes, profile`,
		`{name: a, "\e[31m\nb": c, peer: b, probes: [{type: c}]}`:  `paths[0]."\x1b[31m\nb" is unknown; the keys here are labels`,
		"{name: a, nam: b, nam2: c, peer: b, probes: [{type: c}]}": `paths[0].nam2 is unknown; the keys here are labels, link, name, peer, probes, profile`,
	} {
		if got := refusal(t, "paths: ["+text+"]"); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestNamesOfAnyLengthAreCutInMessages(t *testing.T) {
	long := strings.Repeat("ä", 250_000)
	var text strings.Builder
	text.WriteString("reflector:\n")
	for i := range 40 {
		fmt.Fprintf(&text, "  %s%d: 1\n", long, i)
	}
	text.WriteString("paths:\n- name: a\n  peer: b\n  probes: [{type: c}]\n")
	for i := range 40 {
		fmt.Fprintf(&text, "  %s%d: 1\n", long, i)
	}
	fmt.Fprintf(&text, "version: %s\nlinks: {%s: 1, %s: 2}\n", long, long, long)
	got := refusal(t, text.String())
	if len(got) > 50_000 || !strings.Contains(got, "x.yml:46:3: paths[0]."+strings.Repeat("ä", 100)+"... is unknown; the keys here are labels,") {
		t.Errorf("the error has %d bytes: %.500s", len(got), got)
	}
}

// mergeBomb has a probe that merges 1000 times what merges a mapping 1000 times.
func mergeBomb(depth int) string {
	text := "defaults:\n  a: &a0 {k0: 1, k1: 1}\n"
	for i := 1; i <= depth; i++ {
		text += fmt.Sprintf("  b%d: &a%d\n    <<: [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 1000), ","))
	}
	return text + fmt.Sprintf("paths:\n- name: p\n  peer: h\n  probes:\n  - <<: *a%d\n    type: stamp\n", depth)
}

func TestMappingIsMergedOnceHoweverOftenItIsNamed(t *testing.T) {
	c, err := Parse("x.yml", []byte(mergeBomb(2)))
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		K0 int `yaml:"k0"`
		K1 int `yaml:"k1"`
	}
	probe := c.Paths[0].Probes[0].Options
	d := &decoder{}
	pairs, _ := d.pairs(probe.at, "")
	if err := probe.Decode(&o); err != nil || o.K0 != 1 || o.K1 != 1 || len(pairs) != 3 || d.visits > 10 {
		t.Errorf("%+v, %d keys from %d values of aliases, %v", o, len(pairs), d.visits, err)
	}
	if got := refusal(t, mergeBomb(4)); !strings.Contains(got, "merges mappings in mappings, more than 4 deep") {
		t.Errorf("a deeper one: error is %.300s", got)
	}
}

func TestWhatIsMergedFirstHasPriority(t *testing.T) {
	c, err := Parse("x.yml", []byte("defaults:\n  a: &a {k: 1, l: 1}\n  b: &b {<<: [*a], k: 2, m: 2}\n  c: &c {<<: [*a], m: 3, l: 3}\n  stamp: {<<: [*b, *c, *a], n: 4}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		K int `yaml:"k"`
		L int `yaml:"l"`
		M int `yaml:"m"`
		N int `yaml:"n"`
	}
	if err := c.Defaults["stamp"].Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.K != 2 || got.L != 1 || got.M != 2 || got.N != 4 {
		t.Errorf("got %+v", got)
	}
}

func TestListThatMergesItselfIsRefused(t *testing.T) {
	if got := refusal(t, "paths:\n- name: p\n  peer: h\n  probes: [{type: c, <<: &l [*l, *l]}]\n"); !strings.Contains(got, "it must be a mapping") {
		t.Errorf("error is %.300s", got)
	}
}
