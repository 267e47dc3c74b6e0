package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
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
		all := objects(t, c.set)
		i := slices.IndexFunc(all, func(o object) bool { return o.kind() == c.kind })
		if i < 0 {
			t.Fatalf("%s: no object is %s", c.set, c.kind)
		}
		place, ok := field(all[i], c.path...).(map[string]any)
		if !ok {
			t.Fatalf("%s has no %v", c.kind, c.path)
		}
		place["misspelled"] = true
		if err := check(all[i]); err == nil || !strings.Contains(err.Error(), "'misspelled' not allowed") {
			t.Errorf("%s: a misspelled field at /%s: %v", c.kind, strings.Join(c.path, "/"), err)
		}
	}
}

// TestEachNameOfAReleaseGivesValidObjects: the longest one, whose paths have names of at most 100 characters, and one that YAML takes for a number.
func TestEachNameOfAReleaseGivesValidObjects(t *testing.T) {
	needHelm(t)
	check := schemas(t, schemasFile)
	for _, release := range []string{strings.Repeat("r", 53), "123"} {
		text, err := helm("template", release, made.archive, kubeVersion, "--namespace=measure", "--values=testdata/operator.yaml", "--set=replicas=100",
			"--set-string=priorityClassName=1,serviceAccount.name=2")
		if err != nil {
			t.Fatal(err)
		}
		all := decode(t, text)
		for _, o := range all {
			if err := check(o); err != nil {
				t.Errorf("%s: %s %s: %v", release, o.kind(), o.name(), err)
			}
		}
		var hosts []struct{ Name string }
		if err := yaml.Unmarshal([]byte(filesOf(t, all)["hosts.yml"]), &hosts); err != nil || len(hosts) < 100 {
			t.Fatal(len(hosts), err)
		}
		if name := hosts[98].Name + "-to-" + hosts[99].Name; len(name) > 100 {
			t.Errorf("the path %s has a name of %d characters", name, len(name))
		}
	}
}
