package main

import (
	"encoding"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/incident"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/serve/httpd"
	"oneway.example/exporter/watcher"
	"oneway.example/exporter/watchers"
)

var (
	jsonNameRE = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	unitRE     = regexp.MustCompile(`_(seconds|ns|bytes|packets|delays|ratio|per_second|db|percentile)$`)
)

// TestEachNumberInJSONHasItsUnit reads the types of all printed and stored JSON: a number has its unit in its name or in
// that of its parent, or exporter/doc/json.md explains it.
func TestEachNumberInJSONHasItsUnit(t *testing.T) {
	document, err := os.ReadFile("../../doc/json.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	numbers := 0
	var walk func(at reflect.Type, place string, unit bool)
	walk = func(at reflect.Type, place string, unit bool) {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice || at.Kind() == reflect.Array || at.Kind() == reflect.Map {
			at = at.Elem()
		}
		switch {
		case at.Implements(reflect.TypeFor[encoding.TextMarshaler]()): // a text
		case at.Kind() == reflect.Struct && !seen[at]:
			seen[at] = true
			for field := range at.Fields() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if !field.IsExported() && !field.Anonymous || name == "-" {
					continue
				}
				if field.Anonymous {
					walk(field.Type, place, unit)
					continue
				}
				if at.PkgPath() != "" && strings.HasPrefix(at.PkgPath(), "oneway.example") && !jsonNameRE.MatchString(name) {
					t.Errorf("%s.%s is named %q in JSON, want snake_case", at, field.Name, name)
				}
				walk(field.Type, place+"."+name, unit || unitRE.MatchString(name))
			}
		case at.Kind() >= reflect.Int && at.Kind() <= reflect.Float64:
			numbers++
			name := place[strings.LastIndexByte(place, '.')+1:]
			if !unit && !strings.Contains(string(document), "`"+name+"`") {
				t.Errorf("%s is a number without a unit that exporter/doc/json.md does not explain", place)
			}
		}
	}
	documents := map[string]any{
		"probe": probeHead{}, "voice": voiceDocument{}, "calibrate": calibrationDocument{}, "test": testDocument{}, "transfer": udptraffic.Transfer{},
		"status": agent.Status{}, "runs": httpd.Runs{}, "report": report.Document{}, "incident": incident.Body{},
		"trends": trendsDocument{}, "compare": compareDocument{}, "maintenance": maintenanceDocument{},
	}
	for _, one := range probes.All() {
		if kind, ok := one.(loadtest.Commander); ok {
			documents[one.Name()] = kind.Command().Results
		}
		if kind, ok := one.(probe.Terminal); ok {
			documents[one.Name()] = kind.Terminal().Command().Values
		}
		if kind, ok := one.(probe.Valued); ok {
			documents["status of "+one.Name()] = kind.StatusValues()
		}
	}
	for _, one := range watchers.All() {
		if kind, ok := one.(watcher.Detailed); ok {
			documents["watcher "+one.Name()] = kind.StatusDetails()
		}
	}
	for name, v := range documents {
		if v == nil {
			t.Errorf("%s has no type", name)
			continue
		}
		walk(reflect.TypeOf(v), name, false)
	}
	if numbers < 100 {
		t.Errorf("only %d numbers were found", numbers)
	}
}
