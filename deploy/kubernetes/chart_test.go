package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func TestLintAcceptsTheChart(t *testing.T) {
	needHelm(t)
	for _, set := range valueSets {
		if out, err := helm("lint", "--strict", made.archive, kubeVersion, "--values=testdata/"+set+".yaml"); err != nil {
			t.Errorf("%s: %v\n%s", set, err, out)
		}
	}
}

func TestSameInputGivesTheSameArchive(t *testing.T) {
	files, err := chart(root, testVersion)
	if err != nil {
		t.Fatal(err)
	}
	again, err := pack(files, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if first := read(t, made.archive); !bytes.Equal(first, again) {
		t.Error("two archives of one chart differ")
	}
}

func TestHelmReadsTheVersionOfTheArchive(t *testing.T) {
	needHelm(t)
	about, err := helm("show", "chart", made.archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"version: " + testVersion + "\n", "appVersion: " + testVersion + "\n"} {
		if !strings.Contains(about, want) {
			t.Errorf("Helm reads %q, want %q in it", about, want)
		}
	}
}

// TestPrometheusRulesAreTheFilesOfRules: each object has the content of a file, and each file has an object. Numbers of expressions are texts.
func TestPrometheusRulesAreTheFilesOfRules(t *testing.T) {
	needHelm(t)
	var got, want []any
	for _, o := range objects(t, "operator") {
		if o.kind() == "PrometheusRule" {
			got = append(got, o["spec"])
		}
	}
	files, err := filepath.Glob(root + "/deploy/prometheus/rules/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var rules map[string]any
		if err := yaml.Unmarshal(read(t, file), &rules); err != nil {
			t.Fatal(err)
		}
		for _, g := range rules["groups"].([]any) {
			for _, rule := range g.(map[string]any)["rules"].([]any) {
				one := rule.(map[string]any)
				one["expr"] = fmt.Sprint(one["expr"])
			}
		}
		want = append(want, rules)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d objects do not equal the %d files of rules", len(got), len(want))
	}
}

// TestDashboardsAreTheFilesOfGrafana: as JSON, each in a ConfigMap within the limit of 1 MiB; without the value raw only the ones that read Prometheus.
func TestDashboardsAreTheFilesOfGrafana(t *testing.T) {
	files, err := filepath.Glob(root + "/grafana-dashboards/dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []bool{true, false} {
		found := map[string]string{}
		for _, o := range objects(t, "operator", fmt.Sprintf("--set=grafana.dashboards.raw=%t", raw)) {
			if field(o, "metadata", "labels", "grafana_dashboard") != "1" {
				continue
			}
			for name, text := range o["data"].(map[string]any) {
				found[name] = text.(string)
				if size := len(text.(string)); size > 1<<20 {
					t.Errorf("%s has %d bytes; a ConfigMap has at most 1 MiB", name, size)
				}
			}
		}
		expected := 0
		for _, file := range files {
			name := filepath.Base(file)
			if !raw && strings.HasPrefix(name, "raw_") {
				continue
			}
			expected++
			var got, want any
			if err := json.Unmarshal([]byte(found["oneway-"+name]), &got); err != nil {
				t.Errorf("raw %t: %s: %v", raw, name, err)
			}
			if err := json.Unmarshal(read(t, file), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("raw %t: %s is not the file's dashboard", raw, name)
			}
		}
		if len(found) != expected {
			t.Errorf("raw %t: %d dashboards, want %d", raw, len(found), expected)
		}
	}
}

// TestReleaseFitsInASecret: Helm keeps the chart, its values and its objects in one Secret, which has at most 1 MiB.
func TestReleaseFitsInASecret(t *testing.T) {
	files, err := chart(root, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	release, err := json.Marshal(map[string]any{"chart": files, "manifest": manifest(t, "operator")})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression) // as Helm does
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(release); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	size := base64.StdEncoding.EncodedLen(b.Len())
	t.Logf("the release with all objects has %d bytes of %d", size, 1<<20)
	if size > 1<<20*9/10 {
		t.Errorf("the release has %d bytes; less than a tenth of 1 MiB is left", size)
	}
}

// TestValuesThatAreWrongAreRefused, of the chart and of oneway.yml, by name and place.
func TestValuesThatAreWrongAreRefused(t *testing.T) {
	needHelm(t)
	for set, want := range map[string]string{
		"reflektor.port=1":                     "additional properties 'reflektor' not allowed",
		"reflector.prot=1":                     "additional properties 'prot' not allowed",
		"network=host":                         "value must be one of 'node', 'pod'",
		"config.clok.source=none":              "additional properties 'clok' not allowed",
		"config.paths[0].pear=a":               "additional properties 'pear' not allowed",
		"workload=StatefulSet":                 "needs network: pod",
		"maxUnavailable=some":                  "does not match pattern",
		"operator.podMonitor.interval=fifteen": "does not match pattern",
		"hosts[0].name=a":                      "missing property 'address'",
		"hosts[0].name=a,hosts[0].address=b:1,hosts[1].name=a,hosts[1].address=c:1": `two have the name "a"`,
		"config.reflector.listen={:862}":                                            `no address that ends with ":8862"`,
		"image.digest=sha256:12":                                                    "does not match pattern",
		"grafana.dashboards.labels.x=1":                                             "additional properties 'labels' not allowed",
		"config.defaults.stamp.intervall=200ms":                                     "/config/defaults/stamp/intervall",
	} {
		_, err := helm("template", "oneway", made.archive, kubeVersion, "--set="+set)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}

// TestTableOfThePageIsThatOfTheValues: make generate writes it.
func TestTableOfThePageIsThatOfTheValues(t *testing.T) {
	want, err := table("oneway/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if page := read(t, root+"/exporter/doc/kubernetes.md"); !bytes.Contains(page, []byte(tableBegin+want+tableEnd)) {
		t.Error("the page has another table: make generate")
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
