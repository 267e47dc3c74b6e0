package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// chart is the content of the chart by file, of a version.
func chart(root, version string) (map[string][]byte, error) {
	files := map[string][]byte{}
	source := os.DirFS(filepath.Join(root, "deploy/kubernetes/oneway"))
	if err := fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(source, name)
		return err
	}); err != nil {
		return nil, err
	}
	files["Chart.yaml"] = bytes.ReplaceAll(files["Chart.yaml"], []byte("ersion: 0.0.0\n"), fmt.Appendf(nil, "ersion: %s\n", version))
	if err := addAll(files, "files/rules", filepath.Join(root, "deploy/prometheus/rules/*.yml"), nil); err != nil {
		return nil, err
	}
	// Helm keeps the chart and its objects in one Secret of at most 1 MiB; spaces of indentation are half of a dashboard.
	if err := addAll(files, "files/dashboards", filepath.Join(root, "grafana-dashboards/dashboards/*.json"), json.Compact); err != nil {
		return nil, err
	}
	config, err := os.ReadFile(filepath.Join(root, "exporter/doc/schema/config.json"))
	if err != nil {
		return nil, err
	}
	files["values.schema.json"], err = withConfig(files["values.schema.json"], config)
	return files, err
}

// addAll adds the files of a pattern, changed by a function if there is one.
func addAll(files map[string][]byte, to, pattern string, change func(*bytes.Buffer, []byte) error) error {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no file is %s", pattern)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if change != nil {
			var b bytes.Buffer
			if err := change(&b, text); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			text = b.Bytes()
		}
		files[path.Join(to, filepath.Base(name))] = text
	}
	return nil
}

// withConfig is the schema of the values, with the schema of oneway.yml for the value config.
func withConfig(values, config []byte) ([]byte, error) {
	var all, inner map[string]any
	if err := json.Unmarshal(values, &all); err != nil {
		return nil, fmt.Errorf("values.schema.json: %w", err)
	}
	if err := json.Unmarshal(config, &inner); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	properties, ok := all["properties"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("values.schema.json has no properties")
	}
	definitions, ok := inner["$defs"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("config.json has no $defs")
	}
	// The chart adds what a mesh requires.
	if mesh, ok := definitions["mesh"].(map[string]any); ok {
		delete(mesh, "required")
	}
	all["$defs"] = definitions
	delete(inner, "$defs")
	delete(inner, "$schema")
	properties["config"] = inner
	return json.Marshal(all)
}

// pack makes the archive of a chart, in the order of the names, with one time.
func pack(files map[string][]byte, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	zip, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(zip)
	// Helm reads Chart.yaml first.
	names := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		if first := "Chart.yaml"; (a == first) != (b == first) {
			if a == first {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		header := &tar.Header{Name: "oneway/" + name, Mode: 0o644, Size: int64(len(files[name])), ModTime: date, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
