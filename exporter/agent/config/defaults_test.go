package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/option"
)

// withDefaults is the options of a probe in a file with these defaults.
func withDefaults(t *testing.T, defaults, options string) Section {
	t.Helper()
	c, err := Parse("x.yml", []byte("defaults: {stamp: {"+defaults+"}}\npaths: [{name: p, peer: a, probes: [{type: stamp, "+options+"}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	return c.Paths[0].Probes[0].Options.WithDefaults(c.Defaults["stamp"])
}

type defaulted struct {
	Interval time.Duration `yaml:"interval"`
	DSCP     int           `yaml:"dscp"`
	Nested   struct {
		A int `yaml:"a"`
		B int `yaml:"b"`
	} `yaml:"nested"`
}

func TestOwnKeysReplaceDefaultsAsAWhole(t *testing.T) {
	s := withDefaults(t, "interval: 2s, dscp: 46, nested: {a: 1}", "dscp: 10, nested: {b: 2}")
	got := defaulted{Interval: time.Second}
	got.Nested.A, got.Nested.B = 7, 8
	if err := s.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := defaulted{Interval: 2 * time.Second, DSCP: 10}
	want.Nested.A, want.Nested.B = 7, 2
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !s.Has("interval") || !s.Has("nested.b") || s.Has("nested.a") || s.Has("schedule") || s.Own().Has("interval") || !s.Own().Has("dscp") {
		t.Error("Has reports a present key as absent, or the reverse")
	}
}

func TestErrorsOfDefaultsNameTheirPlace(t *testing.T) {
	s := withDefaults(t, "interval: 0s, further: 1, nested: {a: b}", "dscp: 99")
	err := s.Decode(&defaulted{})
	want := `x.yml:1:34: defaults.stamp.further is unknown; the keys here are dscp, interval, nested
x.yml:1:58: defaults.stamp.nested.a is "b"; it must be a whole number`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	found := s.Problems(errors.Join(option.Errorf("interval", "is 0s"), option.Errorf("dscp", "is 99"), option.Errorf("rate", "is missing")))
	want = `x.yml:1:30: defaults.stamp.interval is 0s
x.yml:2:37: paths[0].probes[0].rate is missing
x.yml:2:57: paths[0].probes[0].dscp is 99`
	if got := found.Sort().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFingerprintIsThatOfTheKeysInForce(t *testing.T) {
	same := withDefaults(t, "interval: 2s, dscp: 46", "interval: 1s").Fingerprint()
	for _, c := range []struct {
		defaults, options string
		equal             bool
	}{
		{"dscp: 46", "interval: 1s", true},
		{"interval: 1s", "dscp: 46", true},
		{"", "dscp: 46, interval: 1s", true},
		{"interval: 3s, dscp: 46", "interval: 1s", true},
		{"dscp: 45", "interval: 1s", false},
		{"dscp: 46, ttl: 1", "interval: 1s", false},
		{"", "interval: 1s", false},
	} {
		if got := withDefaults(t, c.defaults, c.options).Fingerprint(); (got == same) != c.equal {
			t.Errorf("defaults %q, options %q: equal is %v", c.defaults, c.options, got == same)
		}
	}
}

func TestFileOfADefaultIsPartOfTheFingerprint(t *testing.T) {
	dir := written(t, map[string]string{"conf.d/one.key": "1"})
	fingerprint := func() string {
		c, err := Parse(dir+"/main.yml", []byte(strings.ReplaceAll(onePath, "%s", "p")))
		d, also := Parse(dir+"/conf.d/d.yml", []byte("defaults: {stamp: {other_file: one.key}}"))
		if err != nil || also != nil {
			t.Fatal(err, also)
		}
		return c.Paths[0].Probes[0].Options.WithDefaults(d.Defaults["stamp"]).Fingerprint()
	}
	before := fingerprint()
	if again := fingerprint(); again != before {
		t.Error("the fingerprint changes by itself")
	}
	rewrite(t, dir+"/conf.d/one.key", "2")
	if fingerprint() == before {
		t.Error("the content of a default's file is not part of the fingerprint")
	}
}
