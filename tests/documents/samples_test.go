package documents

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"oneway.example/exporter/doc/schema"
)

// sample is a document of a running program of version 1, of whose long lists three elements are left. It is not written again: an
// earlier document stays valid, as fields are only added.
func sample(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSamplesStayValid(t *testing.T) {
	for _, name := range []string{"probe", "interrupted", "test", "failed", "calibration", "voice", "status", "runs", "report", "incident"} {
		text := sample(t, name)
		if err := Check(KindOf(text), text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A field that a schema does not have is an error in every object, and a list is the value of no quantity.
func TestUnknownFieldIsNotValid(t *testing.T) {
	for _, name := range []string{"probe", "test", "calibration", "voice", "status", "runs", "incident"} {
		text := sample(t, name)
		of, err := schema.Files.ReadFile(string(KindOf(text)) + ".json")
		if err != nil {
			t.Fatal(err)
		}
		s, err := compile(of)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		var each func(v any, place string)
		each = func(v any, place string) {
			switch v := v.(type) {
			case []any:
				for _, one := range v {
					each(one, place+"[]")
				}
			case map[string]any:
				v["no_such_field"] = []any{}
				tried++
				if s.Validate(doc) == nil {
					t.Errorf("%s: an unknown field of %s is valid", name, place)
				}
				delete(v, "no_such_field")
				for key, one := range v {
					each(one, place+"."+key)
				}
			}
		}
		each(doc, "")
		if tried < 2 {
			t.Errorf("%s has %d objects", name, tried)
		}
	}
}

// example is a line of exporter/doc/json.md: a command and the filter of jq behind it.
var example = regexp.MustCompile(`(?m)^    (?:oneway (probe|test|calibrate|voice)|curl -s localhost:9862/(api/v1/status|runs/ID|runs))[^|]* \| jq (?:-[re] )?'([^']+)'$`)

func TestEachExampleOfJqPrintsAValue(t *testing.T) {
	page, err := os.ReadFile("../../exporter/doc/json.md")
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string]string{
		"probe": "probe", "test": "test", "calibrate": "calibration", "voice": "voice", "api/v1/status": "status", "runs": "runs", "runs/ID": "report",
	}
	found := example.FindAllStringSubmatch(string(page), -1)
	if lines := strings.Count(string(page), " | jq "); len(found) != lines || lines < 10 {
		t.Fatalf("%d of %d examples are read", len(found), lines)
	}
	for _, one := range found {
		var doc any
		if err := json.Unmarshal(sample(t, samples[one[1]+one[2]]), &doc); err != nil {
			t.Fatal(err)
		}
		query, err := gojq.Parse(one[3])
		if err != nil {
			t.Errorf("%s: %v", one[3], err)
			continue
		}
		printed := 0
		for results := query.Run(doc); ; {
			v, ok := results.Next()
			if !ok {
				break
			}
			if err, failed := v.(error); failed {
				t.Errorf("%s: %v", one[3], err)
			}
			if v != nil {
				printed++
			}
		}
		if printed == 0 {
			t.Errorf("%s prints nothing", one[3])
		}
	}
}
