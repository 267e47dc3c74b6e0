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
	of, err := schema.Files.ReadFile(string(kind) + ".json")
	if err != nil {
		return fmt.Errorf("documents: %w", err)
	}
	if err := CheckBy(of, text); err != nil {
		return fmt.Errorf("documents: document %s: %w", kind, err)
	}
	return nil
}

// CheckBy returns an error for a document that is not valid by a JSON Schema.
func CheckBy(schema, text []byte) error {
	compiled, err := compile(schema)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

func compile(text []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("documents: schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseLoader(stored{})
	if err := c.AddResource(directory+"schema", doc); err != nil {
		return nil, fmt.Errorf("documents: schema: %w", err)
	}
	return c.Compile(directory + "schema")
}

// directory is the URL under which the schemas refer to each other.
const directory = "http://agent.example/api/v1/schema/"

// stored loads the schemas that the agent serves.
type stored struct{}

// Load returns the schema with this URL.
func (stored) Load(url string) (any, error) {
	text, err := schema.Files.ReadFile(strings.TrimPrefix(url, directory))
	if err != nil {
		return nil, fmt.Errorf("documents: schema %s: %w", url, err)
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(text))
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
