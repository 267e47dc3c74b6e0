// Command rulefiles writes the rule files for Prometheus, and the alerts that Grafana evaluates, from package rules.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/doc/ruletext"
)

//go:generate go run . ../../../deploy/prometheus/rules ../../../deploy/grafana/alerting/oneway-influxdb.yml

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rulefiles:", err)
		os.Exit(1)
	}
}

// run writes the files of Prometheus to the directory in args, and the one of Grafana to the file in it.
func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: rulefiles DIRECTORY FILE")
	}
	grafana, err := grafanaText(rules.GrafanaAlerts())
	if err != nil {
		return err
	}
	if err := os.WriteFile(args[1], []byte(grafana), 0o644); err != nil {
		return err
	}
	for _, f := range rules.Files() {
		if err := os.WriteFile(filepath.Join(args[0], f.Name), []byte(ruletext.YAML(f)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
