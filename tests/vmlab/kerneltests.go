package vmlab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oneway.example/tests/flaky"
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
// the directory of the compiled tests, o is the guest's. One that does not pass, or skips, runs once more, after all others: kept
// gets the first output of one that passes then, and one that does not is an error with both outputs.
func RunKernelTests(build string, o Options, tests []KernelTest, kept *flaky.Kept) (passed []Passed, err error) {
	g, err := Start(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	failures := map[KernelTest]error{}
	for _, t := range tests {
		p, err := runKernelTest(g, build, o.Dir, t)
		if err != nil {
			failures[t] = err
			continue
		}
		passed = append(passed, p)
	}
	for t, first := range failures {
		p, second := runKernelTest(g, build, o.Dir, t)
		if second != nil {
			err = errors.Join(err, first, second)
			continue
		}
		passed = append(passed, p)
		if _, e := kept.Add(t.Name, first.Error()); e != nil {
			err = errors.Join(err, e)
		}
	}
	return passed, err
}

func runKernelTest(g *Guest, build, dir string, t KernelTest) (Passed, error) {
	begin := time.Now()
	// Into the guest's directory, which is visible in the guest for any build directory.
	if err := copyFile(filepath.Join(dir, t.Binary), filepath.Join(build, t.Binary)); err != nil {
		return Passed{}, err
	}
	out, err := g.Do(record.Command{Do: record.Run, Args: []string{
		filepath.Join(record.Dir, t.Binary), "-test.v", "-test.run=^" + t.Name + "$", "-test.timeout=4m",
	}})
	if err != nil || !strings.Contains(out, "--- PASS: "+t.Name) {
		return Passed{}, fmt.Errorf("vmlab: %s in a guest did not pass: %w\n%s", t.Name, errors.Join(err, errNotPassed), out)
	}
	return Passed{t, time.Since(begin), out}, nil
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
