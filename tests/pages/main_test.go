// Package pages tests the pages of the agent's web server in a real Chromium, with paths and reports of every kind.
package pages

import (
	"fmt"
	"os"
	"testing"

	"oneway.example/tests/lab"
	"oneway.example/tests/oneway"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(lab.Main(func() int { return run(m) }))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "oneway-pages")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if binary, err = oneway.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
