// Command kubernetes makes the Helm chart of oneway: the directory oneway beside it, with the rules of Prometheus, the dashboards of Grafana and
// the schema of the configuration, which are generated elsewhere. The same input gives the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

//go:generate go run . -page ../../exporter/doc/kubernetes.md

func main() {
	root := flag.String("root", "../..", "directory of the repository")
	out := flag.String("out", "", "directory of the archive")
	version := flag.String("version", "0.0.0", "version of the chart and tag of the image")
	seconds := flag.Int64("date", 0, "time of the commit, seconds since 1970")
	page := flag.String("page", "", "page whose table of values to write, instead of an archive")
	flag.Parse()
	if err := run(*root, *out, *version, time.Unix(*seconds, 0).UTC(), *page); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
}

func run(root, out, version string, date time.Time, page string) error {
	if page != "" {
		return writeTable(filepath.Join(root, "deploy/kubernetes/oneway/values.yaml"), page)
	}
	files, err := chart(root, version)
	if err != nil {
		return err
	}
	packed, err := pack(files, date)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "oneway-"+version+".tgz"), packed, 0o644)
}
