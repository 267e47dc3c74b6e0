// Command rulefiles writes the rule files for Prometheus from package rules.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/doc/ruletext"
)

//go:generate go run . ../../../deploy/prometheus/rules

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rulefiles:", err)
		os.Exit(1)
	}
}

// run writes the files to the directory in args.
func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: rulefiles DIRECTORY")
	}
	for _, f := range rules.Files() {
		if err := os.WriteFile(filepath.Join(args[0], f.Name), []byte(ruletext.YAML(f)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
