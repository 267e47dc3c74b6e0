package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// definitions is where OpenAPI and JSON Schema have the definitions of types.
const definitions = "#/components/schemas/"

// kinds collects the schemas of kinds, and of what they refer to, from documents of an API server (/openapi/v3/...). The
// result is a JSON Schema with a definition for each; an object has only the fields that its schema has.
type kinds struct {
	all map[string]any // schema, by name, of all documents
	out map[string]any
}

// read adds the definitions of a document.
func (k *kinds) read(document []byte) error {
	var d struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return fmt.Errorf("openapi: %w", err)
	}
	if k.all == nil {
		k.all, k.out = map[string]any{}, map[string]any{}
	}
	maps.Copy(k.all, d.Components.Schemas)
	return nil
}

// add adds the schema of a kind, by the name apiVersion/Kind.
func (k *kinds) add(apiVersion, kind string) error {
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	for name, schema := range k.all {
		s, _ := schema.(map[string]any)
		known, _ := s["x-kubernetes-group-version-kind"].([]any)
		if !slices.ContainsFunc(known, func(of any) bool {
			o, _ := of.(map[string]any)
			return o["group"] == group && o["version"] == version && o["kind"] == kind
		}) {
			continue
		}
		k.out[apiVersion+"/"+kind] = map[string]any{"$ref": "#/$defs/" + name}
		return k.refer(name)
	}
	return fmt.Errorf("the server has no %s of %s", kind, apiVersion)
}

// refer adds a definition, and those that it refers to.
func (k *kinds) refer(name string) error {
	if _, done := k.out[name]; done {
		return nil
	}
	schema, ok := k.all[name]
	if !ok {
		return fmt.Errorf("the server has no definition of %s", name)
	}
	k.out[name] = true // for definitions that refer to themselves
	strict, err := k.strict(schema)
	k.out[name] = strict
	return err
}

// strict is a schema as JSON Schema, without texts, for which an unknown field is an error.
func (k *kinds) strict(schema any) (any, error) {
	switch s := schema.(type) {
	case []any:
		out := make([]any, len(s))
		for i, v := range s {
			var err error
			if out[i], err = k.strict(v); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		return k.strictMap(s)
	}
	return schema, nil
}

func (k *kinds) strictMap(s map[string]any) (any, error) {
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, definitions)
		return map[string]any{"$ref": "#/$defs/" + name}, k.refer(name)
	}
	out := map[string]any{}
	for key, v := range s {
		switch {
		case key == "description" || key == "default" || key == "format" || strings.HasPrefix(key, "x-kubernetes-"):
		case key == "properties":
			properties := map[string]any{}
			for name, p := range v.(map[string]any) {
				strict, err := k.strict(p)
				if err != nil {
					return nil, err
				}
				properties[name] = strict
			}
			out[key] = properties
		default:
			strict, err := k.strict(v)
			if err != nil {
				return nil, err
			}
			out[key] = strict
		}
	}
	if s["x-kubernetes-int-or-string"] == true || s["format"] == "int-or-string" {
		delete(out, "type")
	}
	_, open := s["additionalProperties"]
	if _, fields := out["properties"]; fields && !open && s["x-kubernetes-preserve-unknown-fields"] != true {
		out["additionalProperties"] = false
	}
	return out, nil
}

// packed is the result, compressed.
func (k *kinds) packed() ([]byte, error) {
	text, err := json.Marshal(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": k.out})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}
