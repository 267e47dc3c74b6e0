package pulse_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"oneway.example/tests/pulse"
	"oneway.example/tests/sandbox"
)

func TestMain(m *testing.M) {
	pulse.Shim()
	if device := os.Getenv(childDevice); device != "" {
		if err := child(device); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// needRoot skips without root and its capabilities.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, NOT PASSED: a device node needs root")
	}
}

// architectures are those whose programs this kernel runs: the host's and, on amd64, that of 32-bit programs.
func architectures() []string {
	if runtime.GOARCH == "amd64" {
		return []string{runtime.GOARCH, "386"}
	}
	return []string{runtime.GOARCH}
}

// compile compiles the tests of a package for an architecture.
func compile(t *testing.T, pkg, goarch string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, pkg)
	cmd.Env = append(os.Environ(), "GOARCH="+goarch, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return binary
}

// The agent's own test with a kernel's pulses runs unchanged, as a 64-bit program and as a 32-bit one, whose structures have another
// layout.
func TestAgentFetchesPulses(t *testing.T) {
	needRoot(t)
	t.Parallel()
	for _, goarch := range architectures() {
		t.Run(goarch, func(t *testing.T) {
			t.Parallel()
			binary := compile(t, "oneway.example/exporter/watchers/pps", goarch)
			s := sandbox.New(t, "", "")
			d := s.Pulse(pulse.Settings{})
			cmd := s.Command(binary, "-test.run=^TestRealPulsesAreFetched$", "-test.v")
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := d.Start(cmd); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "--- PASS: TestRealPulsesAreFetched") {
				t.Errorf("%v\n%s", err, &out)
			}
			t.Log(out.String())
		})
	}
}
