package documents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/doc/schema"
)

// Valid fails the test unless a document of this kind is valid by its JSON Schema.
func Valid(t testing.TB, kind document.Kind, text []byte) {
	t.Helper()
	if err := Check(kind, text); err != nil {
		t.Errorf("%v\n%.3000s", err, text)
	}
}

// Check returns an error for a document that is not valid, and for one of another kind.
func Check(kind document.Kind, text []byte) error {
	compiled, err := compile(kind)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("documents: document %s: %w", kind, err)
	}
	if err := compiled.Validate(value); err != nil {
		return fmt.Errorf("documents: document %s: %w", kind, err)
	}
	return nil
}

// compile reads the schema of a kind.
func compile(kind document.Kind) (*jsonschema.Schema, error) {
	file, err := schema.Files.Open(string(kind) + ".json")
	if err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading only
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		return nil, fmt.Errorf("documents: schema %s: %w", kind, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(string(kind), doc); err != nil {
		return nil, fmt.Errorf("documents: schema %s: %w", kind, err)
	}
	compiled, err := c.Compile(string(kind))
	if err != nil {
		return nil, fmt.Errorf("documents: schema %s: %w", kind, err)
	}
	return compiled, nil
}

// KindOf is the kind that a document states; empty: none.
func KindOf(text []byte) document.Kind {
	var d struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return ""
	}
	kind, _ := strings.CutSuffix(strings.TrimPrefix(d.Schema, "oneway/"), "/"+document.Version)
	return document.Kind(kind)
}
