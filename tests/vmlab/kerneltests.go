package vmlab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oneway.example/tests/vmlab/record"
)

// KernelTest is a test of another package that steps its kernel's clock, and so runs
// in a guest only.
type KernelTest struct {
	// Binary is the name of the compiled test in the directory of the builds.
	Binary, Name string
}

// KernelTests are all of them.
func KernelTests() []KernelTest {
	return []KernelTest{
		{"clock.test", "TestKernelReportsARealStepAtOnce"},
		{"chrony.test", "TestBoundHoldsThroughStepsAndAHangOfAChronydInControl"},
	}
}

// Passed is the end of a passed test.
type Passed struct {
	KernelTest
	Took   time.Duration
	Output string
}

// RunKernelTests runs the tests in a guest of their own, one after the other. build is
// the directory of the compiled tests, o is the guest's. One that does not pass, or skips,
// is an error that has its output.
func RunKernelTests(build string, o Options, tests []KernelTest) (passed []Passed, err error) {
	g, err := Start(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	for _, t := range tests {
		begin := time.Now()
		// Into the guest's directory, which is visible in the guest for any build directory.
		if e := copyFile(filepath.Join(o.Dir, t.Binary), filepath.Join(build, t.Binary)); e != nil {
			err = errors.Join(err, e)
			continue
		}
		out, runErr := g.Do(record.Command{Do: record.Run, Args: []string{
			filepath.Join(record.Dir, t.Binary), "-test.v", "-test.run=^" + t.Name + "$", "-test.timeout=4m",
		}})
		if runErr != nil || !strings.Contains(out, "--- PASS: "+t.Name) {
			err = errors.Join(err, fmt.Errorf("vmlab: %s in a guest did not pass: %w\n%s", t.Name, errors.Join(runErr, errNotPassed), out))
			continue
		}
		passed = append(passed, Passed{t, time.Since(begin), out})
	}
	return passed, err
}

var errNotPassed = errors.New("no line says that it did")

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		return fmt.Errorf("vmlab: %w", err)
	}
	return nil
}
