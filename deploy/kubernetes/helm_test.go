package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Helm takes minutes to build. Its tests run with withHelm=1, as make chart-test sets it, which records what they were run for; and
// where the chart, the values, the version of Helm or the tests are others than the recorded ones. All other tests read recorded objects.
const (
	withHelm   = "ONEWAY_HELM"
	digestFile = "testdata/recorded/digest"
)

// recorded is the file with the objects of a set of values, but for dashboards, and rules other than the first.
func recorded(set string) string { return "testdata/recorded/" + set + ".yaml" }

// digest is the SHA-256 of all that Helm gets, and of the tests.
func digest() (string, error) {
	files, err := chart(root, testVersion)
	if err != nil {
		return "", err
	}
	all := maps.Clone(files)
	for _, set := range valueSets {
		if all[set], err = os.ReadFile("testdata/" + set + ".yaml"); err != nil {
			return "", err
		}
	}
	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		return "", err
	}
	for _, name := range append(tests, "go.sum") { // go.sum has the version of Helm
		if all[name], err = os.ReadFile(name); err != nil {
			return "", err
		}
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(h, "%s %d\n%s", name, len(all[name]), all[name])
	}
	return fmt.Sprintf("%x\n", h.Sum(nil)), nil
}

// helmIsNeeded reports whether the tests of Helm run.
func helmIsNeeded() (bool, error) {
	if os.Getenv(withHelm) == "1" || os.Getenv("ONEWAY_CLUSTER") != "" {
		return true, nil
	}
	want, err := digest()
	if err != nil {
		return false, err
	}
	last, err := os.ReadFile(digestFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if string(last) != want {
		fmt.Fprintln(os.Stderr, "kubernetes: building Helm, as the chart or its tests have changed since make chart-test")
		return true, nil
	}
	return false, nil
}

// needHelm skips a test of what Helm does.
func needHelm(t *testing.T) {
	t.Helper()
	if made.helm == "" {
		t.Skip("SKIPPED, NOT PASSED: chart, values, version of Helm and tests are as in the last make chart-test, in which it passed")
	}
}

// record writes what the tests were run for, and the objects of each set of values.
func record() error {
	if err := os.MkdirAll(filepath.Dir(digestFile), 0o755); err != nil {
		return err
	}
	for _, set := range valueSets {
		text, err := render(set)
		if err != nil {
			return err
		}
		all, err := decoded(text)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		e := yaml.NewEncoder(&b)
		rules := false
		for _, o := range withoutDashboards(all) {
			if o.kind() == "PrometheusRule" && rules {
				continue
			}
			rules = rules || o.kind() == "PrometheusRule"
			if err := e.Encode(map[string]any(o)); err != nil {
				return err
			}
		}
		if err := os.WriteFile(recorded(set), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	d, err := digest()
	if err != nil {
		return err
	}
	return os.WriteFile(digestFile, []byte(d), 0o644)
}
