package main

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/outputs"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/watchers"
)

func TestCommittedConfigurationIsCurrent(t *testing.T) {
	committed, err := os.ReadFile("../../../deploy/oneway.yml")
	if err != nil || string(committed) != text() {
		t.Errorf("deploy/oneway.yml is not current (%v): run go generate ./exporter/doc/configdoc", err)
	}
}

// described are the structs of all options that the configuration lists from their descriptions, by the type that has them.
func described() map[string][]option.Described {
	all := agent.Sections(clocks.All(), probes.All(), watchers.All())
	for _, p := range probes.All() {
		_, all[p.Name()] = p.Document()
	}
	for _, o := range outputs.All() {
		_, all[o.Name()] = o.Document()
	}
	for _, w := range watchers.All() {
		_, all[w.Name()] = w.Document()
	}
	return all
}

// uncommented removes the # of settings.
func uncommented(text string) string {
	return regexp.MustCompile(`(?m)^( *)#([a-z_]+:)`).ReplaceAllString(text, "$1$2")
}

func TestEachOptionIsDescribedAndItsShownValueIsItsDefaultOrAnExample(t *testing.T) {
	for name, structs := range described() {
		var b block
		b.line(0, "paths:\n  - name: p\n    peer: h\n    probes:\n      - type: x")
		b.options(8, nil, structs...)
		c, err := config.Parse("oneway.yml", []byte(uncommented(b.String())))
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, b.String())
			continue
		}
		var into []any
		for _, s := range structs {
			option.SetDefaults(s)
			into = append(into, s)
			if missing := option.Undescribed(s); len(missing) > 0 {
				t.Errorf("%s: without description: %q", name, missing)
			}
		}
		if err := c.Paths[0].Probes[0].Options.DecodeAll(into...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, d := range all(structs) {
			got := reflect.ValueOf(d.Pointer()).Elem()
			if d.Shown() == option.String(d.Default()) && !reflect.DeepEqual(got.Interface(), d.Default()) && (!got.IsZero() || d.Shown() != "") {
				t.Errorf("%s: %s is %v, and its default %v", name, d.Key, got, d.Default())
			}
			for i, c := range d.Key {
				if c == '.' && d.Group(d.Key[:i]) == "" {
					t.Errorf("%s: the group %s is not described", name, d.Key[:i])
				}
			}
			if strings.ContainsAny(d.Explained(), "{}") {
				t.Errorf("%s: the reference in %q is no key", name, d.Explained())
			}
		}
	}
}

// A value below the least, and one above the largest, is refused with the name of the key.
func TestValuesBeyondTheBoundsAreRefused(t *testing.T) {
	checked := 0
	for name, structs := range described() {
		for _, s := range structs {
			for i := range s.Describe() {
				option.SetDefaults(s)
				d := option.All(s)[i]
				_, high := d.Bounds()
				v := reflect.ValueOf(d.Pointer()).Elem()
				limit := reflect.ValueOf(high)
				if high == nil || !v.CanInt() || limit.Int()+1 < limit.Int() {
					continue
				}
				v.SetInt(limit.Int() + 1)
				checked++
				if err := s.Describe()[i].Check(); err == nil && d.Key != "interval" && d.Key != "first_rows" && d.Key != "max_rows" {
					t.Errorf("%s: %s accepts %v, more than %v", name, d.Key, v, high)
				}
			}
		}
	}
	if checked < 60 {
		t.Errorf("%d options were checked", checked)
	}
}

// active removes the first # of the load tests.
func active(tests string) string {
	return regexp.MustCompile(`(?m)^  #(- |  )`).ReplaceAllString(tests, "  $1")
}

func TestLoadTestsBeginWhenTheirFirstCharacterIsRemoved(t *testing.T) {
	text := active(loadTests())
	c, err := config.Parse("oneway.yml", []byte("paths:\n"+text))
	if err != nil || len(c.Paths) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	next := 0
	for _, one := range probes.All() {
		test, fills := one.(probe.LoadTest)
		if !fills {
			continue
		}
		if next == len(c.Paths[0].Probes) || c.Paths[0].Probes[next].Type != one.Name() {
			t.Fatalf("%s is not at its place in\n%s", one.Name(), text)
		}
		for _, r := range test.Requirements() {
			if !c.Paths[0].Probes[next].Options.Has(r.Key) {
				t.Errorf("%s has no %s", one.Name(), r.Key)
			}
		}
		next++
	}
	if next != len(c.Paths[0].Probes) {
		t.Errorf("%d load tests in\n%s", len(c.Paths[0].Probes), text)
	}
}
