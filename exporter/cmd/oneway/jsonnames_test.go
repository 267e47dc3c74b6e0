package main

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/incident"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes/message"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/exporter/probes/sizesweep"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/probes/tcp"
	"oneway.example/exporter/probes/tcpshort"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/exporter/probes/train"
	"oneway.example/exporter/serve/httpd"
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
	for name, v := range map[string]any{
		"probe": probeHead{}, "stamp": stamp.Document{}, "voice": voiceDocument{}, "calibrate": calibrationDocument{}, "test": testDocument{},
		"saturation": saturation.Result{}, "size_sweep": sizesweep.Result{}, "train": train.Result{}, "tcp": tcp.Result{}, "tcp_sweep": tcpsweep.Result{}, "tcp_short": tcpshort.Result{}, "message": message.Result{}, "transfer": udptraffic.Transfer{},
		"status": agent.Status{}, "runs": httpd.Runs{}, "report": report.Document{}, "incident": incident.Body{},
	} {
		walk(reflect.TypeOf(v), name, false)
	}
	if numbers < 100 {
		t.Errorf("only %d numbers were found", numbers)
	}
}
