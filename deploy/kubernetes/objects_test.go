package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemasFile has the schemas of the kinds that the chart uses, as the API server of the last make deploy-test describes them.
const schemasFile = "testdata/schemas.json.gz"

// oldestSchemasFile has the same of Kubernetes 1.29, the oldest that the chart permits (kubeVersion), without the kinds of the Prometheus
// operator: from the module of its source.
const (
	oldestSchemasFile = "testdata/schemas-1.29.json.gz"
	oldestModule      = "k8s.io/kubernetes@v1.29.15"
	operatorGroup     = "monitoring.coreos.com"
)

// schemas compiles the schemas; the function checks an object.
func schemas(t *testing.T, file string) func(object) error {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(read(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(zip)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schemas.json", document); err != nil {
		t.Fatal(err)
	}
	return func(o object) error {
		version, _ := o["apiVersion"].(string)
		s, err := c.Compile("schemas.json#/$defs/" + strings.ReplaceAll(version, "/", "~1") + "~1" + o.kind())
		if err != nil {
			return err
		}
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		return s.Validate(value)
	}
}

func TestEachObjectIsAsTheServerDescribesIt(t *testing.T) {
	check, checkOldest := schemas(t, schemasFile), schemas(t, oldestSchemasFile)
	for _, set := range valueSets {
		for _, o := range objects(t, set) {
			if err := check(o); err != nil {
				t.Errorf("%s: %s %s: %v", set, o.kind(), o.name(), err)
			}
			if version, _ := o["apiVersion"].(string); strings.Contains(version, operatorGroup) {
				continue
			}
			if err := checkOldest(o); err != nil {
				t.Errorf("%s: %s %s in Kubernetes 1.29: %v", set, o.kind(), o.name(), err)
			}
		}
	}
	if about := string(read(t, "oneway/Chart.yaml")); !strings.Contains(about, `kubeVersion: ">=1.29.0-0"`) {
		t.Errorf("the chart permits other versions than those of %s", oldestSchemasFile)
	}
}

// TestUnknownFieldsAreNotAsTheServerDescribesThem: each is refused, with its place.
func TestUnknownFieldsAreNotAsTheServerDescribesThem(t *testing.T) {
	check := schemas(t, schemasFile)
	pod := []string{"spec", "template", "spec"}
	for _, c := range []struct {
		set, kind string
		path      []string
	}{
		{"node", "DaemonSet", nil},
		{"node", "DaemonSet", append(pod, "securityContext")},
		{"node", "DaemonSet", pod},
		{"operator", "StatefulSet", []string{"spec"}},
		{"operator", "Service", []string{"spec"}},
		{"operator", "ServiceAccount", nil},
		{"pod", "NetworkPolicy", []string{"spec"}},
		{"pod", "ConfigMap", nil},
		{"operator", "PodMonitor", []string{"spec"}},
		{"operator", "PodMonitor", []string{"spec", "selector"}},
		{"operator", "PrometheusRule", []string{"spec"}},
		{"operator", "ScrapeConfig", []string{"spec"}},
	} {
		for _, o := range objects(t, c.set) {
			if o.kind() != c.kind {
				continue
			}
			place, ok := field(o, c.path...).(map[string]any)
			if !ok {
				t.Fatalf("%s has no %v", c.kind, c.path)
			}
			place["misspelled"] = true
			at := "'/" + strings.Join(c.path, "/") + "'"
			if err := check(o); err == nil || !strings.Contains(err.Error(), "'misspelled' not allowed") {
				t.Errorf("%s: a misspelled field at %s: %v", c.kind, at, err)
			}
			break
		}
	}
}
