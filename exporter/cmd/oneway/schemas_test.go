package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/backtoback"
	"oneway.example/exporter/agent/incident"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/doc/schema"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calendar"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/serve/historyreport"
	"oneway.example/exporter/serve/httpd"
	"oneway.example/exporter/watcher"
	"oneway.example/exporter/watchers"
	"oneway.example/tests/documents"
)

var update = flag.Bool("update", false, "rewrite exporter/doc/schema")

type part = map[string]any

// oneOf is the schema of a text that has one of the values of several lists.
func oneOf(lists ...[]string) part {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return part{"type": "string", "enum": slices.Compact(all)}
}

// causes is the schema of agent.ProbeStatus.Cause.
func causes() part {
	own := metric.Values{metric.ReasonL: probe.Causes()}
	all := oneOf(metric.DelayInvalid.Values.Names(metric.ReasonL), metric.OnDemandFailure.Values.Names(metric.ReasonL), metric.Runs.Values.Names(metric.ReasonL), own.Names(metric.ReasonL))
	all["description"] = "Others are " + strings.Join(probe.Causes(), "; ") + "."
	return all
}

// values is the schema of report.Values: the metrics of these types of load tests.
func values(types []probe.Type) part {
	loadTests := slices.DeleteFunc(slices.Clone(types), func(t probe.Type) bool { _, ok := t.(probe.LoadTest); return !ok })
	properties := part{}
	for _, group := range metric.Groups(metric.Declared(loadTests)...) {
		if slices.Contains([]string{metric.TitleProbes, metric.TitlePackets, metric.TitleDelay, metric.TitleVoice}, group.Title) { // of light probes
			continue
		}
		for _, d := range group.Descs {
			if len(d.Labels) < 2 || d.Labels[0] != metric.Path || slices.Contains(d.Labels, "link") || !loadtest.Summarizes(d) {
				continue
			}
			one := part{"type": "number"}
			for _, label := range slices.Backward(d.Labels[2:]) {
				of := part{"type": "object", "additionalProperties": one}
				if label == metric.Direction {
					of = part{"type": "object", "properties": part{"forward": one, "reverse": one}, "additionalProperties": false}
				}
				one = of
			}
			one["description"] = d.Help
			properties[strings.TrimPrefix(d.Name, "oneway_")] = one
		}
	}
	return part{"type": "object", "properties": properties, "additionalProperties": false}
}

func generator(types []probe.Type) *documents.Generator {
	of := func(v any) reflect.Type { return reflect.TypeOf(v) }
	row, _ := reflect.TypeFor[incident.Body]().FieldByName("Rows")
	points, _ := reflect.TypeFor[report.Series]().FieldByName("X")
	text := part{"type": "string"}
	results, terminal := metric.Runs.Values.Names(metric.ResultL), []string{reasonInterrupted, reasonNotFound, reasonUsage, string(lightreason.Unresolved)}
	direction := part{"type": "string", "enum": []string{"forward", "reverse"}}
	return &documents.Generator{
		Types: map[reflect.Type]map[string]any{
			of(report.Seconds(0)): {"type": "number"}, of(instant.Time(0)): {"type": "integer"}, of(calendar.Window{}): text,
			of(loadtest.Completed):   oneOf(results),
			row.Type:                 {"type": "array", "items": part{"type": "array"}},
			points.Type:              {"type": "array", "items": part{"type": "number"}},
			of(record.Row{}):         {"type": "array", "items": part{"type": []string{"integer", "null"}}, "minItems": 6, "maxItems": 7},
			of(udptraffic.Damaged{}): {"type": "object", "additionalProperties": part{"type": "integer"}},
		},
		Fields: map[string]map[string]any{
			"document.Outcome.Result":  {"type": "string", "enum": []string{runreason.Completed, runreason.Incomplete, runreason.Failed}},
			"document.Outcome.Reason":  oneOf(terminal, metric.OnDemandFailure.Values.Names(metric.ReasonL), []string{runreason.OK, runreason.Internal}),
			"document.Envelope.Schema": text, "loadtest.Outcome.Reason": oneOf(terminal, metric.Runs.Values.Names(metric.ReasonL)), "agent.ProbeStatus.Cause": causes(), "incident.Deviation.Direction": direction,
			"report.Header.Result":  oneOf(results, []string{report.Unreadable}),
			"report.Line.Direction": direction, "saturation.Direction.Direction": direction, "tcp.Direction.Direction": direction,
		},
		Variants: map[string][]reflect.Type{"agent.ProbeStatus.Values": statusValues(types)},
		Words:    fieldWords(),
		Present:  []reflect.Type{of(loadtest.Outcome{}), of(loadtest.Run{})},
	}
}

// withKinds completes a schema of a run; reference is the place of the results and settings of each kind.
func withKinds(g *documents.Generator, run part, reference string) {
	properties := run["properties"].(part)
	properties["transfers"] = g.Of(reflect.TypeFor[[]udptraffic.Series]())
	var names []string
	for _, k := range testKinds() {
		names = append(names, k.name)
	}
	properties["kind"] = part{"type": "string", "enum": names}
	run["allOf"] = []any{part{"$ref": reference}}
}

// clockSettings are the settings of the clock.
func clockSettings() part {
	return part{"clock": part{"type": "string"}, "clock_bound_seconds": part{"type": "number"}}
}

// kinds are the results and settings of a run, by its kind.
func kinds(g *documents.Generator) part {
	var all []any
	for _, k := range testKinds() {
		all = append(all, part{
			"if": part{"properties": part{"kind": part{"const": k.name}}},
			"then": part{"properties": part{
				"results":  g.Of(reflect.TypeOf(k.Results)),
				"settings": part{"anyOf": []any{part{"type": "null"}, g.Settings(clockSettings(), k.Shared, k.Own)}},
			}},
		})
	}
	return part{"allOf": all}
}

// withWatchers adds the details of each type of watcher to the schema of the status.
func withWatchers(g *documents.Generator, status part) {
	var all []any
	details := map[string]part{}
	for _, kind := range watchers.All() {
		detailed, ok := kind.(watcher.Detailed)
		if !ok {
			continue
		}
		details[kind.Name()] = g.Of(reflect.TypeOf(detailed.StatusDetails()))
		all = append(all, part{
			"if":   part{"properties": part{"type": part{"const": kind.Name()}}},
			"then": part{"properties": part{"details": details[kind.Name()]}},
		})
	}
	maps.Copy(status["receiver"].(part), details["gpsd"])
	maps.Copy(status["pulse"].(part), details["pps"])
	status["watchers"].(part)["items"] = part{"allOf": append(all, status["watchers"].(part)["items"])}
}

// probeSchemas are the schemas of the documents of light probes. flags are settings that all have.
func probeSchemas(t *testing.T, g *documents.Generator, flags part, types []probe.Type) map[document.Kind][]byte {
	t.Helper()
	all := map[document.Kind][]byte{}
	for _, one := range types {
		kind, ok := one.(probe.Terminal)
		if !ok {
			continue
		}
		m := kind.Terminal()
		c := m.Command()
		own, _ := m.Options()
		text, err := g.Schema(c.Document, "oneway "+cmp.Or(c.Name, flagName(one.Name()))+" --json", probeHead{}, func(whole part) {
			properties := whole["properties"].(part)
			maps.Copy(properties, g.Object(reflect.TypeOf(c.Values))["properties"].(part)) // absent without a test packet
			properties["settings"] = g.Settings(flags, own)
		})
		if err != nil {
			t.Fatalf("%s: %v", c.Document, err)
		}
		all[c.Document] = text
	}
	return all
}

// statusValues are the types of the values that light probes have in the status.
func statusValues(types []probe.Type) (all []reflect.Type) {
	for _, one := range types {
		if kind, ok := one.(probe.Valued); ok {
			all = append(all, reflect.TypeOf(kind.StatusValues()))
		}
	}
	return all
}

// schemas are those of all kinds.
func schemas(t *testing.T) map[document.Kind][]byte {
	t.Helper()
	number, text, when := part{"type": "number"}, part{"type": "string"}, part{"type": "string", "format": "date-time"}
	flags := part{"count": part{"type": "integer"}}
	maps.Copy(flags, clockSettings())
	call := part{
		"codec": text, "model": text, "mouth_to_ear_delay_seconds": number, "loss_ratio": number, "loss_burst_ratio": number, "talker_echo_loudness_rating_db": number,
	}
	g := generator(probes.All())
	settings := func(others part, structs ...any) func(part) {
		return func(whole part) { whole["properties"].(part)["settings"] = g.Settings(others, structs...) }
	}
	all := maps.Clone(probeSchemas(t, g, flags, probes.All()))
	for _, one := range []struct {
		kind  document.Kind
		title string
		value any
		add   func(part)
	}{
		{document.Test, "oneway test --json", testDocument{}, func(whole part) {
			g.Define("kinds", kinds(g))
			g.Define("values", values(probes.All()))
			withKinds(g, whole, "#/$defs/kinds")
		}},
		{document.Calibration, "oneway calibrate --json", calibrationDocument{}, settings(clockSettings(), stamp.Options{}, backtoback.Options{})},
		{document.Voice, "oneway voice --json", voiceDocument{}, settings(call)},
		{document.Status, "/api/v1/status", agent.Status{}, func(whole part) { withWatchers(g, whole["properties"].(part)) }},
		{document.Trends, "oneway trends --json", trendsDocument{}, settings(selectedHistories(part{"busy_hours": text, "path": text}))},
		{document.Compare, "oneway compare --json", compareDocument{}, settings(selectedHistories(part{"a": text, "b": text, "by": text, "a_from": when, "a_to": when, "b_from": when, "b_to": when}))},
		{document.Maintenance, "oneway maintenance list --json", maintenanceDocument{}, nil},
		{document.Runs, "/runs", httpd.Runs{}, nil},
		{document.Report, "/runs/ID", report.Document{}, func(whole part) {
			run := g.Object(reflect.TypeFor[loadtest.Outcome]())
			withKinds(g, run, "test.json#/$defs/kinds")
			whole["properties"].(part)["body"] = part{
				"if":   part{"properties": part{"trigger": true}, "required": []string{"trigger"}},
				"then": g.Of(reflect.TypeFor[incident.Body]()), "else": run,
			}
		}},
	} {
		place := "test.json" // has the values of a run, to which the others refer
		if one.kind == document.Test {
			place = ""
		}
		g.Types[reflect.TypeFor[report.Values]()] = part{"$ref": place + "#/$defs/values"}
		text, err := g.Schema(one.kind, one.title, one.value, one.add)
		if err != nil {
			t.Fatalf("%s: %v", one.kind, err)
		}
		all[one.kind] = text
	}
	if len(g.Undescribed) > 0 {
		t.Errorf("fields without a description, by a comment or by fieldWords: %q", g.Undescribed)
	}
	return all
}

// selectedHistories are the settings of historyFlags.
func selectedHistories(others part) part {
	text, number, instant := part{"type": "string"}, part{"type": "number"}, part{"type": "string", "format": "date-time"}
	maps.Copy(others, part{
		"measure": part{"type": "string", "enum": historyreport.MeasureNames()}, "from": instant, "to": instant, "timezone": text,
		"margin_ratio": number, "loss_margin_ratio": number, "seed": part{"type": "integer"}, "draws": part{"type": "integer"},
		"labels": text, "direction": part{"type": "string", "enum": []string{"forward", "reverse"}},
	})
	return others
}

// tableOfKinds is the table of the documents in exporter/doc/json.md, by kind.
func tableOfKinds(schemas map[document.Kind][]byte) (string, error) {
	rows := "| kind | document | JSON Schema |\n|---|---|---|\n"
	for _, kind := range slices.Sorted(maps.Keys(schemas)) {
		var head struct{ Title string }
		if err := json.Unmarshal(schemas[kind], &head); err != nil {
			return "", err
		}
		rows += fmt.Sprintf("| `%s` | `%s` | [%[1]s.json](schema/%[1]s.json) |\n", kind, head.Title)
	}
	return rows, nil
}

// rewrite writes a file with -update, and compares it without.
func rewrite(t *testing.T, name string, text []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if stored, err := os.ReadFile(name); err != nil || !bytes.Equal(stored, text) {
		t.Errorf("%s differs from the types of the documents (%v); go generate ./exporter/doc/schema writes it", name, err)
	}
}

// TestSchemasAreThoseOfTheDocuments: exporter/doc has the schemas of all documents, which the agent serves, and json.md the table of them.
func TestSchemasAreThoseOfTheDocuments(t *testing.T) {
	const dir = "../../doc/"
	all := schemas(t)
	for kind, text := range all {
		rewrite(t, fmt.Sprintf("%sschema/%s.json", dir, kind), text)
		for _, words := range regexp.MustCompile(`"description": .*`).FindAllString(string(text), -1) {
			if name := regexp.MustCompile(`\b[A-Z][a-z]+[A-Z][a-z]\w+|\bnil\b|\b[a-z]+\.[A-Z]\w+`).FindString(words); name != "" && name != "InCsumErrors" {
				t.Errorf("%s: the name %s of the program is in %s", kind, name, words)
			}
		}
		if served, err := schema.Files.ReadFile(string(kind) + ".json"); !*update && (err != nil || !bytes.Equal(served, text)) {
			t.Errorf("%s: the agent serves another schema: %v", kind, err)
		}
	}
	text, err := os.ReadFile(dir + "json.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := tableOfKinds(all)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| kind \|.*\n(?:\|.*\n)+`)
	if !rows.Match(text) {
		t.Fatal("json.md has no table of kinds")
	}
	rewrite(t, dir+"json.md", rows.ReplaceAllLiteral(text, []byte(table)))
}
