package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func TestLintAcceptsTheChart(t *testing.T) {
	for _, set := range valueSets {
		if out, err := helm("lint", "--strict", made.archive, kubeVersion, "--values=testdata/"+set+".yaml"); err != nil {
			t.Errorf("%s: %v\n%s", set, err, out)
		}
	}
}

func TestSameInputGivesTheSameArchive(t *testing.T) {
	files, err := chart(root, "1.2.3-git20261130")
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
	about, err := helm("show", "chart", made.archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"version: 1.2.3-git20261130\n", "appVersion: 1.2.3-git20261130\n"} {
		if !strings.Contains(about, want) {
			t.Errorf("Helm reads %q, want %q in it", about, want)
		}
	}
}

// TestPrometheusRulesAreTheFilesOfRules: each object has the content of a file, and each file has an object. Numbers of expressions are texts.
func TestPrometheusRulesAreTheFilesOfRules(t *testing.T) {
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
	for set, want := range map[string]string{
		"reflektor.port=1":                      "additional properties 'reflektor' not allowed",
		"reflector.prot=1":                      "additional properties 'prot' not allowed",
		"network=host":                          "value must be one of 'node', 'pod'",
		"config.clok.source=none":               "additional properties 'clok' not allowed",
		"config.paths[0].pear=a":                "additional properties 'pear' not allowed",
		"workload=StatefulSet":                  "needs network: pod",
		"maxUnavailable=some":                   "does not match pattern",
		"operator.podMonitor.interval=fifteen":  "does not match pattern",
		"hosts[0].name=a":                       "missing property 'address'",
		"image.digest=sha256:12":                "does not match pattern",
		"grafana.dashboards.labels.x=1":         "additional properties 'labels' not allowed",
		"config.defaults.stamp.intervall=200ms": "/config/defaults/stamp/intervall",
	} {
		_, err := helm("template", "oneway", made.archive, kubeVersion, "--set="+set)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}

// TestAgentAcceptsTheConfigurationOfItsVolume: the volume is laid as the kubelet lays it, links included, with its modes and groups,
// and user 65532 checks what is in it.
func TestAgentAcceptsTheConfigurationOfItsVolume(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: only root can become user 65532")
	}
	dir, err := os.MkdirTemp("/tmp", "volume") // t.TempDir is not readable for others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "oneway")
	build := exec.Command("go", "build", "-C", root, "-o", program, "./exporter/cmd/oneway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	secrets := map[string]string{"reflector.key": "a secret of some length\n", "tokens": "name: a\n"}
	token := exec.Command(program, "token", "new", "--file="+filepath.Join(dir, "tokens"), "--name=client", "--out="+filepath.Join(dir, "token"))
	if out, err := token.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	secrets["tokens"] = string(read(t, filepath.Join(dir, "tokens")))

	for set, paths := range map[string][]string{
		"node":     {"node-a-to-node-b", "node-a-to-node-c"},
		"pod":      {"to-branch"},
		"operator": nil, // below
	} {
		all := objects(t, set)
		pod := podOf(t, all)
		group, _ := field(pod, "securityContext", "fsGroup").(int)
		var mode int
		for _, v := range field(pod, "volumes").([]any) {
			if v := v.(map[string]any); v["name"] == "config" {
				mode, _ = field(v, "projected", "defaultMode").(int)
			}
		}
		if group != 65532 || mode != 0o440 {
			t.Fatalf("%s: the volume has group %d and mode %#o", set, group, mode)
		}
		files := map[string]string{}
		for name, text := range theOne(t, withoutDashboards(all), "ConfigMap")["data"].(map[string]any) {
			files[name] = text.(string)
		}
		if set == "node" {
			maps.Copy(files, secrets)
		}
		if set == "operator" {
			paths = []string{"oneway-1-to-oneway-0", "oneway-1-to-oneway-2"}
			files["oneway.yml"] = strings.Replace(files["oneway.yml"], "mesh:\n", "mesh:\n  self: oneway-1\n", 1)
		}
		volume := writeVolume(t, filepath.Join(dir, set), files, group, os.FileMode(mode))
		check := exec.Command(program, "check-config", "--paths", filepath.Join(volume, "oneway.yml"))
		check.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: uint32(group)}}
		out, err := check.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s\n%s", set, err, out, files["oneway.yml"])
		}
		for _, p := range paths {
			if !strings.Contains(string(out), p) {
				t.Errorf("%s: no path %s in\n%s", set, p, out)
			}
		}
	}
}

// writeVolume writes a projected volume: files in a directory of their own, links to them, all of root and the group.
func writeVolume(t *testing.T, dir string, files map[string]string, group int, mode os.FileMode) string {
	t.Helper()
	data := filepath.Join(dir, "..2026_11_30")
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fail(os.MkdirAll(data, 0o755))
	fail(os.Symlink(filepath.Base(data), filepath.Join(dir, "..data")))
	for name, text := range files {
		file := filepath.Join(data, name)
		fail(os.WriteFile(file, []byte(text), mode))
		fail(os.Chmod(file, mode))
		fail(os.Chown(file, 0, group))
		fail(os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	return dir
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

// podOf is the specification of the pods.
func podOf(t *testing.T, all []object) map[string]any {
	t.Helper()
	for _, o := range all {
		if pod, ok := field(o, "spec", "template", "spec").(map[string]any); ok {
			return pod
		}
	}
	t.Fatal("no object makes pods")
	return nil
}

func withoutDashboards(all []object) []object {
	return slices.DeleteFunc(slices.Clone(all), func(o object) bool { return strings.Contains(o.name(), "-dashboard-") })
}
