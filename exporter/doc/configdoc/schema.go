package main

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/outputs"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/watchers"
)

// object is a JSON Schema, or a part of one.
type object = map[string]any

// kinds are the options of types, by the names of the types.
type kinds map[string][]option.Described

// add adds a type whose options are described.
func (k kinds) add(name string, one option.Documented) {
	_, k[name] = one.Document()
}

// generator makes the JSON Schema (draft 2020-12) of a configuration file from the descriptions of all options. It is for one file:
// check-config finds what depends on other files, on other keys, or on this host.
type generator struct {
	sections    map[string][]option.Described
	definitions object
}

// schema is the JSON Schema of a configuration file.
func schema() []byte {
	g := &generator{agent.Sections(clocks.All(), probes.All(), watchers.All()), object{}}
	whole := g.properties(&config.Config{})
	into := func(key string, part object) { maps.Copy(whole[key].(object), part) }
	for _, key := range []string{"calibration_file", "state_dir", "site"} {
		into(key, object{"type": "string"})
	}
	into("include", oneOrMany(object{"type": "string"}))
	into("profile", object{"enum": []string{metric.Full.String(), metric.Slim.String()}})
	into("reports", g.section("reports"))
	into("reflector", g.section("reflector"))
	into("load_server", g.section("load_server"))
	into("maintenance", object{"type": "array", "items": g.section("maintenance")})
	into("links", object{"type": "array", "items": g.section("links")})
	g.definitions["path"] = option.Object(g.properties(&config.Path{}), option.RequiredKeys(&config.Path{})...)
	g.definitions["mesh"] = g.section("mesh")
	into("defaults", g.probes())
	into("on_demand", g.onDemand())
	stores, watches := kinds{}, kinds{}
	for _, one := range outputs.All() {
		stores.add(one.Name(), one)
	}
	for _, one := range watchers.All() {
		watches.add(one.Name(), one)
	}
	into("outputs", object{"items": g.items("output", stores, object{"name": named("the type")})})
	into("watchers", object{"items": g.items("watcher", watches, object{"name": named("the type")})})
	into("clock", g.clock(watches))

	all := option.Object(whole)
	all["$schema"], all["title"], all["$defs"] = "https://json-schema.org/draft/2020-12/schema", "oneway.yml", g.definitions
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // in values of the program
	}
	return append(text, '\n')
}

// oneOrMany is a value, or a list of such values.
func oneOrMany(one object) object {
	return object{"anyOf": []any{one, object{"type": "array", "items": one}}}
}

// named is the name of an item; usual is its default.
func named(usual string) object {
	return object{"type": "string", "description": "The name, a label of its metrics. Default: " + usual + "."}
}

// properties are the schemas of the options of structs, by key.
func (g *generator) properties(structs ...option.Described) object {
	return option.Properties(map[reflect.Type]map[string]any{
		reflect.TypeFor[config.Words]():              oneOrMany(object{"type": "string"}),
		reflect.TypeFor[config.Version]():            {"const": 1},
		reflect.TypeFor[config.Section]():            {}, // its owner has the schema
		reflect.TypeFor[config.Sections]():           oneOrMany(object{"$ref": "#/$defs/mesh"}),
		reflect.TypeFor[[]config.Path]():             {"type": "array", "items": object{"$ref": "#/$defs/path"}},
		reflect.TypeFor[[]config.Probe]():            {"type": "array", "items": object{"$ref": "#/$defs/probe"}, "minItems": 1},
		reflect.TypeFor[[]config.Item]():             {"type": "array"},
		reflect.TypeFor[map[string]config.Section](): {},
	}, structs...)
}

// section is the schema of a section of the agent.
func (g *generator) section(key string) object {
	return option.Object(g.properties(g.sections[key]...), option.RequiredKeys(g.sections[key]...)...)
}

// items is the schema of an item whose options depend on its type. own are the options of all types.
func (g *generator) items(what string, types kinds, own object) object {
	names := slices.Sorted(maps.Keys(types))
	var all []any
	for _, name := range names {
		g.definitions[what+"_"+name] = object{"type": "object", "properties": g.properties(types[name]...)}
		all = append(all, object{
			"if":   object{"properties": object{"type": object{"const": name}}, "required": []string{"type"}},
			"then": object{"$ref": "#/$defs/" + what + "_" + name},
		})
	}
	own["type"] = object{"enum": names, "description": "The type."}
	return object{"type": "object", "properties": own, "required": []string{"type"}, "allOf": all, "unevaluatedProperties": false}
}

// probes defines probes and modules, and returns the schema of the defaults by type.
func (g *generator) probes() (defaults object) {
	all, lights, ofType := kinds{}, kinds{}, object{}
	for _, one := range probes.All() {
		all.add(one.Name(), one)
		if _, light := one.(probe.OnDemand); light {
			lights.add(one.Name(), one)
		}
		ofType[one.Name()] = object{"$ref": "#/$defs/probe_" + one.Name(), "unevaluatedProperties": false}
	}
	g.definitions["probe"] = g.items("probe", all, g.properties(&config.Probe{}))
	for _, one := range probes.All() {
		for _, key := range unusedBy(one) {
			delete(g.definitions["probe_"+one.Name()].(object)["properties"].(object), key)
		}
	}
	g.definitions["module"] = g.items("probe", lights, g.properties(g.sections["modules"][0], &config.Probe{}))
	maps.Copy(g.definitions["module"].(object)["properties"].(object), object{"name": object{
		"type": "string", "description": "The name of the module, in requests as module=NAME; names must differ. Default: the type.",
	}})
	return option.Object(ofType)
}

func (g *generator) onDemand() object {
	all := g.section("on_demand")
	all["properties"].(object)["modules"].(object)["items"] = object{"$ref": "#/$defs/module"}
	return all
}

// clock is the schema of the clock, with its two watchers.
func (g *generator) clock(watches kinds) object {
	all := option.Object(g.properties(g.sections["clock"]...)) // a key is required by its source only
	for _, of := range agent.ClockWatchers(watchers.All()) {
		own := g.properties(watches[of.Type]...)
		own["name"] = named(of.Name)
		maps.Copy(all["properties"].(object)[of.Type].(object), option.Object(own))
	}
	return all
}
