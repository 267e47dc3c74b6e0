// Package oneway finds the program `oneway` for tests that run it. tests/run.sh builds it once for all of them.
package oneway

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program is the environment variable with the absolute path of the built program. Where it is empty, Build builds.
const Program = "ONEWAY_PROGRAM"

// Build returns the file of the program, which it builds in dir unless Program names one.
func Build(dir string) (binary string, err error) {
	binary = cmp.Or(os.Getenv(Program), filepath.Join(dir, "oneway"))
	if os.Getenv(Program) == "" {
		if out, err := exec.Command("go", "build", "-o", binary, "oneway.example/exporter/cmd/oneway").CombinedOutput(); err != nil {
			return "", fmt.Errorf("oneway: go build: %w\n%s", err, out)
		}
	}
	return binary, nil
}
