package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const root = "../.."

// valueSets are the files of values in testdata.
var valueSets = []string{"node", "pod", "operator"}

// tools are what TestMain has made: the program helm, unless the tests run without it, and the archive of the chart.
type tools struct{ helm, archive string }

var made tools

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kubernetes")
	if err == nil {
		made, err = prepare(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
	status := m.Run()
	if status == 0 && os.Getenv(withHelm) == "1" {
		if err := record(); err != nil {
			fmt.Fprintln(os.Stderr, "kubernetes:", err)
			status = 1
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

func prepare(dir string) (tools, error) {
	made := tools{archive: filepath.Join(dir, "oneway-"+testVersion+".tgz")}
	if err := run(root, dir, testVersion, time.Unix(1_800_000_000, 0), ""); err != nil {
		return made, err
	}
	if needed, err := helmIsNeeded(); err != nil || !needed {
		return made, err
	}
	find := exec.Command("go", "tool", "-n", "helm")
	find.Env = append(os.Environ(), "CGO_ENABLED=0")
	path, err := find.Output()
	if err != nil {
		return made, fmt.Errorf("go tool helm: %w", err)
	}
	made.helm = strings.TrimSpace(string(path))
	return made, nil
}

// testVersion is the version of the chart in the tests.
const testVersion = "1.2.3-git20261130"

// kubeVersion is the version of Kubernetes for commands without a cluster.
const kubeVersion = "--kube-version=1.37.2"

// helm runs Helm and returns what it prints.
func helm(args ...string) (string, error) {
	var out, failure bytes.Buffer
	c := exec.Command(made.helm, args...)
	c.Stdout, c.Stderr = &out, &failure
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w: %s%s", strings.Join(args, " "), err, failure.String(), out.String())
	}
	return out.String(), nil
}

// object is an object of the API.
type object map[string]any

func (o object) kind() string { return fmt.Sprint(o["kind"]) }

func (o object) name() string { return fmt.Sprint(field(o, "metadata", "name")) }

// field is a value within maps; nil if it is absent.
func field(of map[string]any, path ...string) any {
	var value any = of
	for _, key := range path {
		inner, _ := value.(map[string]any)
		value = inner[key]
	}
	return value
}

// objects renders the chart with a set of values; without Helm they are the recorded ones.
func objects(t *testing.T, set string, more ...string) []object {
	t.Helper()
	if made.helm == "" && len(more) == 0 {
		return decode(t, string(read(t, recorded(set))))
	}
	return decode(t, manifest(t, set, more...))
}

// manifest is the text of these objects.
func manifest(t *testing.T, set string, more ...string) string {
	t.Helper()
	needHelm(t)
	text, err := render(set, more...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func render(set string, more ...string) (string, error) {
	return helm(append([]string{"template", "oneway", made.archive, kubeVersion, "--namespace=measure", "--values=testdata/" + set + ".yaml"}, more...)...)
}

func decode(t *testing.T, text string) []object {
	t.Helper()
	all, err := decoded(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func decoded(text string) (all []object, _ error) {
	documents := yaml.NewDecoder(strings.NewReader(text))
	for {
		var o map[string]any
		err := documents.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if o != nil { // what is between two separators
			all = append(all, o)
		}
	}
}

// theOne is the single object of a kind.
func theOne(t *testing.T, all []object, kind string) (found object) {
	t.Helper()
	for _, o := range all {
		if o.kind() == kind {
			if found != nil {
				t.Fatalf("two objects are %s", kind)
			}
			found = o
		}
	}
	if found == nil {
		t.Fatalf("no object is %s", kind)
	}
	return found
}
