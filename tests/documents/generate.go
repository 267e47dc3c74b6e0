// Package documents makes the JSON Schemas of exporter/doc/schema from the Go types of the documents, and checks documents of
// running programs against them.
package documents

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/option"
)

// object is a schema, or a part of one.
type object = map[string]any

// Generator makes schemas.
type Generator struct {
	// Types are the schemas of types that encode themselves.
	Types map[reflect.Type]map[string]any
	// Fields are the schemas of fields whose types do not tell them, by type and name: "report.Header.Result". A description completes
	// the comment of the field.
	Fields map[string]map[string]any
	// Variants are the types of fields that hold values of several types, by type and name. Without any, the field is an object.
	Variants map[string][]reflect.Type
	// Words describe fields without a comment, by their names in JSON.
	Words map[string]string
	// Present are embedded pointers that are never nil.
	Present []reflect.Type

	// Undescribed are the fields without a description.
	Undescribed []string

	source *source
	defs   object
}

// Schema returns the JSON Schema of a kind of document, whose type is that of v. add completes it. It has no $id: a reference to
// another schema is relative to where it was read, a directory or a URL of the agent.
func (g *Generator) Schema(kind document.Kind, title string, v any, add func(schema map[string]any)) ([]byte, error) {
	g.source, g.defs = &source{packages: map[string]*types{}}, object{}
	whole := g.Object(reflect.TypeOf(v))
	whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	whole["title"] = title
	whole["properties"].(object)["schema"].(object)["const"] = kind.Schema()
	if add != nil {
		add(whole)
	}
	if len(g.defs) > 0 {
		whole["$defs"] = g.defs
	}
	text, err := json.MarshalIndent(whole, "", "  ")
	return append(text, '\n'), err
}

// Define adds a definition, to which other schemas refer by its name.
func (g *Generator) Define(name string, schema map[string]any) { g.defs[name] = schema }

// Of returns the schema of a type, a reference for a struct.
func (g *Generator) Of(t reflect.Type) map[string]any {
	if known, ok := g.Types[t]; ok {
		return clone(known)
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return object{"type": "integer"}
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	}
	switch kind := t.Kind(); {
	case kind == reflect.Pointer:
		return nullable(g.Of(t.Elem()))
	case kind == reflect.Struct:
		return g.reference(t)
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()), kind == reflect.String:
		return g.text(t)
	case kind == reflect.Bool:
		return object{"type": "boolean"}
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return object{"type": "integer"}
	case kind == reflect.Float64, kind == reflect.Float32:
		return object{"type": "number"}
	case kind == reflect.Slice:
		return object{"type": "array", "items": g.Of(t.Elem())}
	case kind == reflect.Array:
		return object{"type": "array", "items": g.Of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case kind == reflect.Map:
		return object{"type": "object", "additionalProperties": g.Of(t.Elem())}
	}
	return object{}
}

// text is the schema of a text, with its values if its type declares them.
func (g *Generator) text(t reflect.Type) object {
	out := object{"type": "string"}
	declared := g.source.of(t)
	if constant := declared.unread[t.Name()]; constant != "" {
		panic("documents: the text of " + constant + " is in another package; write it at the constant, so that the schema has it")
	}
	if values := declared.values[t.Name()]; len(values) > 0 {
		out["enum"] = values
	}
	return out
}

// reference defines a struct once.
func (g *Generator) reference(t reflect.Type) object {
	name := nameOf(t)
	if _, ok := g.defs[name]; !ok {
		g.defs[name] = object{} // for types that contain themselves
		g.defs[name] = g.Object(t)
	}
	return object{"$ref": "#/$defs/" + name}
}

var brackets = regexp.MustCompile(`oneway\.example/([a-z]+/)*|[^A-Za-z0-9.]+`)

// nameOf is the name of a definition, without names of Go: "saturation_load".
func nameOf(t reflect.Type) string {
	words := strings.Trim(brackets.ReplaceAllString(t.String(), "."), ".")
	return snake(strings.ReplaceAll(words, ".", "_"))
}

var upper = regexp.MustCompile(`([a-z0-9])([A-Z])`)

func snake(s string) string { return strings.ToLower(upper.ReplaceAllString(s, "${1}_$2")) }

// Object is the schema of a struct in place.
func (g *Generator) Object(t reflect.Type) map[string]any {
	properties, required := object{}, []string{}
	g.fields(t, true, properties, &required)
	slices.Sort(required)
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// fields adds those of a struct. always: the struct is never absent.
func (g *Generator) fields(t reflect.Type, always bool, properties object, required *[]string) {
	docs := g.source.docs(t)
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-", !field.IsExported() && !field.Anonymous:
		case field.Anonymous && name == "":
			inner, present := field.Type, always
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
				present = always && slices.Contains(g.Present, inner)
			}
			g.fields(inner, present, properties, required)
		default:
			one := g.property(t, field, options, docs)
			if one["description"] == nil {
				if one["description"] = g.Words[name]; g.Words[name] == "" {
					g.Undescribed = append(g.Undescribed, t.String()+"."+name)
				}
			}
			properties[name] = one
			if always && options == "" {
				*required = append(*required, name)
			}
		}
	}
}

func (g *Generator) property(t reflect.Type, field reflect.StructField, options string, docs map[string]string) object {
	fixed, ok := g.Fields[t.String()+"."+field.Name]
	out := clone(fixed)
	if variants, several := g.Variants[t.String()+"."+field.Name]; several {
		out = g.anyOf(variants)
	} else if !ok {
		if out = g.Of(field.Type); options != "" && field.Type.Kind() == reflect.Pointer {
			out = g.Of(field.Type.Elem()) // never null
		}
		if kind := field.Type.Kind(); options == "" && (kind == reflect.Slice || kind == reflect.Map) {
			out = nullable(out)
		}
	}
	if words := docs[field.Name]; words != "" {
		more, _ := fixed["description"].(string)
		out["description"] = strings.TrimSpace(words + " " + more)
	}
	return out
}

func (g *Generator) anyOf(variants []reflect.Type) object {
	var all []any
	for _, t := range variants {
		all = append(all, g.Of(t))
	}
	if all == nil {
		return object{"type": "object"}
	}
	return object{"anyOf": all}
}

// Settings is the schema of the options that structs have, as option.Settings names them, and of others.
func (g *Generator) Settings(others map[string]any, structs ...any) map[string]any {
	properties := clone(others)
	for _, s := range structs {
		g.settings(properties, reflect.Indirect(reflect.ValueOf(s)).Type())
	}
	return object{"type": "object", "properties": properties, "additionalProperties": false}
}

func (g *Generator) settings(properties object, t reflect.Type) {
	docs := g.source.docs(t)
	for field := range t.Fields() {
		key, more, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case more == "inline":
			g.settings(properties, field.Type)
		case field.IsExported() && key != "":
			one := g.setting(field.Type)
			if words := docs[field.Name]; words != "" {
				one["description"] = words
			}
			properties[key+option.UnitOf(key, field.Type)] = one
		}
	}
}

func (g *Generator) setting(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "number"}
	case t == reflect.TypeFor[option.PerDirection]():
		return g.Of(t)
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": g.setting(t.Elem())}
	case t.Kind() == reflect.Struct && t.Implements(reflect.TypeFor[interface{ String() string }]()):
		return object{"type": "string"}
	case t.Kind() == reflect.Struct:
		inner := object{}
		g.settings(inner, t)
		return object{"type": "object", "properties": inner, "additionalProperties": false}
	}
	return g.Of(t)
}

// nullable allows null too.
func nullable(s object) object {
	if word, ok := s["type"].(string); ok && s["enum"] == nil {
		s["type"] = []string{word, "null"}
		return s
	}
	return object{"anyOf": []any{s, object{"type": "null"}}}
}

func clone(s object) object {
	return maps.Clone(s)
}
