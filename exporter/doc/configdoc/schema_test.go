package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"oneway.example/tests/documents"
)

// asJSON is a configuration as the validator reads it.
func asJSON(t *testing.T, text []byte) []byte {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCommittedSchemaIsCurrent(t *testing.T) {
	committed, err := os.ReadFile("../schema/config.json")
	if err != nil || string(committed) != string(schema()) {
		t.Errorf("exporter/doc/schema/config.json is not current (%v): run go generate ./exporter/doc/configdoc", err)
	}
}

func TestShippedConfigurationsAreValidByTheSchema(t *testing.T) {
	of := schema()
	files := []string{
		"../../../deploy/oneway.yml", "../../../deploy/mesh/oneway.yml", "../../../deploy/mesh/conf.d/core.yml", "../../../deploy/unscraped/oneway.yml",
		"../../agent/testdata/good/all.yml", "../../agent/config/testdata/good/all.yml",
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := documents.CheckBy(of, asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each example and default of the commented configuration is valid.
func TestShownValuesAreValidByTheSchema(t *testing.T) {
	tests := loadTests()
	whole := strings.Replace(text(), tests, active(tests), 1)
	whole = uncommented(regexp.MustCompile(`(?m)^( *)#- (type|reason):`).ReplaceAllString(whole, "$1- $2:"))
	if err := documents.CheckBy(schema(), asJSON(t, []byte(whole))); err != nil {
		t.Errorf("%v\n%s", err, whole)
	}
	if found := regexp.MustCompile(`(?m)^ *#-? *[a-z_]+: *[^ ]*$`).FindAllString(whole, -1); len(found) > 0 {
		t.Errorf("still commented out: %q", found)
	}
}

// Mistakes that need neither another key nor this host to be found.
func TestWrongConfigurationsAreNotValidByTheSchema(t *testing.T) {
	of := schema()
	for _, name := range []string{
		"bool-word", "clock-is-word", "clock-source", "duration-is-list", "duration-without-unit", "gpsd-unknown-key", "link-nameless", "links-is-mapping", "listen-not-list",
		"load-server-many", "load-server-tokens", "on-demand-limits", "on-demand-type", "output-type", "output-type-missing", "pps-edge",
		"rate-fraction", "rate-huge", "rate-word", "rate-zero", "reports-limits",
	} {
		text, err := os.ReadFile(filepath.Join("../../agent/testdata/bad", name+".yml"))
		if err != nil {
			t.Fatal(err)
		}
		if documents.CheckBy(of, asJSON(t, text)) == nil {
			t.Errorf("%s.yml is valid by the schema:\n%s", name, text)
		}
	}
	for name, text := range map[string]string{
		"unknown key of a file":        "unknown: 1",
		"unknown key of a probe":       "paths: [{name: p, peer: h, probes: [{type: stamp, rate: 5Mbit}]}]",
		"unknown type":                 "paths: [{name: p, peer: h, probes: [{type: nope}]}]",
		"key of another type":          "paths: [{name: p, peer: h, probes: [{type: train, packet_rates: [1]}]}]",
		"path without a probe":         "paths: [{name: p, peer: h, probes: []}]",
		"rate in bytes":                "paths: [{name: p, peer: h, probes: [{type: saturation, rate: {forward: 5MB}}]}]",
		"value above its bound":        "paths: [{name: p, peer: h, probes: [{type: stamp, dscp: 64}]}]",
		"value of a list":              "paths: [{name: p, peer: h, probes: [{type: size_sweep, packet_bytes: [20]}]}]",
		"option of UDP at a TCP test":  "paths: [{name: p, peer: h, probes: [{type: tcp, checksum: true}]}]",
		"light packets beside trains":  "paths: [{name: p, peer: h, probes: [{type: train, working_delay_interval: 100ms}]}]",
		"option of a group":            "paths: [{name: p, peer: h, probes: [{type: saturation, sweep: {lower: 1ms}}]}]",
		"default of another type":      "defaults: {stamp: {trains: 3}}",
		"default with a name":          "defaults: {stamp: {name: x}}",
		"module of a load test":        "on_demand: {targets: [h], modules: [{type: tcp}]}",
		"count of a probe":             "paths: [{name: p, peer: h, probes: [{type: stamp, count: 3}]}]",
		"mesh without hosts":           "mesh: {probes: [{type: stamp}]}",
		"watcher of an unknown type":   "watchers: [{type: nope}]",
		"profile of an unknown name":   "profile: small",
		"version of another format":    "version: 2",
		"list instead of a section":    "reflector: []",
		"amount of data with a typo":   "reports: {max_bytes: 64Kib}",
		"network without its length":   "reflector: {allow: [192.0.2.0]}",
		"number instead of a text":     "paths: [{name: 1, peer: h, probes: [{type: stamp}]}]",
		"text instead of a number":     "on_demand: {targets: [h], modules: [{type: stamp}], max_concurrent: many}",
		"window without a colon":       "paths: [{name: p, peer: h, probes: [{type: tcp, windows: [\"22-6\"]}]}]",
		"buffer that is not an amount": "paths: [{name: p, peer: h, probes: [{type: tcp_sweep, send_buffer_bytes: [large]}]}]",
	} {
		if documents.CheckBy(of, asJSON(t, []byte(text))) == nil {
			t.Errorf("%s: %s is valid by the schema", name, text)
		}
	}
}

// undescribed are the paths of the keys without a description below a schema.
func undescribed(path string, part any) (found []string) {
	switch part := part.(type) {
	case []any:
		for _, one := range part {
			found = append(found, undescribed(path, one)...)
		}
	case map[string]any:
		properties, _ := part["properties"].(map[string]any)
		for key, value := range properties {
			one, isObject := value.(map[string]any)
			if isObject && one["description"] == nil && one["$ref"] == nil && one["const"] == nil {
				found = append(found, path+"."+key)
			}
			found = append(found, undescribed(path+"."+key, value)...)
		}
		for key, value := range part {
			if key != "properties" {
				found = append(found, undescribed(path+"/"+key, value)...)
			}
		}
	}
	return found
}

func TestEachKeyOfTheSchemaHasADescription(t *testing.T) {
	var whole map[string]any
	if err := json.Unmarshal(schema(), &whole); err != nil {
		t.Fatal(err)
	}
	if missing := undescribed("", whole); len(missing) > 0 {
		t.Errorf("without description: %q", missing)
	}
	name := whole["$defs"].(map[string]any)["module"].(map[string]any)["properties"].(map[string]any)["name"].(map[string]any)
	if description := name["description"].(string); !strings.Contains(description, "module=NAME") {
		t.Errorf("the name of a module has the description %q", description)
	}
}
