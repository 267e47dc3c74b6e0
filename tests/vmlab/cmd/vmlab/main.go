// Vmlab boots two guest kernels, runs every scenario in them and prints what the
// agent's delays and bounds were worth. `make vmlab` runs it; see package vmlab.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oneway.example/tests/flaky"
	"oneway.example/tests/vmlab"
)

func main() {
	build := flag.String("build", "build/vmlab", "directory with the program guest; the logs are left there")
	kernel := flag.String("kernel", "", "the guests' kernel, a program of ARCH=um; empty: Debian's linux.uml")
	only := flag.String("only", "", "run the scenarios whose names contain this, after those that bring the lab up")
	pulse := flag.String("pulse", "", "the guests' kernel has a pulse: run the scenarios of that, with this chrony.conf")
	precision := flag.String("precision", "assert", "what becomes of limits that only a quiet machine keeps: assert (after up to three runs), or print")
	flag.Parse()
	if *precision != "assert" && *precision != "print" {
		fmt.Fprintf(os.Stderr, "vmlab: -precision is %q; want assert or print\n", *precision)
		os.Exit(2)
	}
	if err := run(*build, *kernel, *only, *pulse, *precision == "assert"); err != nil {
		fmt.Fprintln(os.Stderr, "vmlab:", err)
		os.Exit(1)
	}
}

func run(build, kernel, only, pulse string, precise bool) (err error) {
	if build, err = filepath.Abs(build); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/dev/shm", "oneway-vmlab-")
	if err != nil {
		return err
	}
	kept, err := flaky.Open(flaky.Dir, "vmlab")
	if err != nil {
		return err
	}
	keptTests, err := flaky.Open(flaky.Dir, "vmlab-kernel")
	if err != nil {
		return err
	}
	defer func() {
		for _, file := range slices.Concat(kept.Files, keptTests.Files) {
			fmt.Printf("FLAKY: passed when it was run once more; its first faults: %s\n", file)
		}
	}()
	logs := filepath.Join(build, "logs")
	if err := os.RemoveAll(logs); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, vmlab.KeepLogs(dir, logs, vmlab.LocalName, vmlab.RemoteName, testsName))
	}()
	test := sideRun{start: func() ([]vmlab.Passed, error) {
		o := vmlab.Options{
			Kernel: kernel, Name: testsName, Dir: filepath.Join(dir, testsName), Logs: filepath.Join(logs, testsName), Init: filepath.Join(build, "guest"),
			Preload: filepath.Join(build, "wake.so"), Devices: pulse != "",
		}
		if pulse != "" {
			return vmlab.RunKernelTests(build, o, vmlab.KernelPulseTests(), keptTests)
		}
		return vmlab.RunKernelTests(build, o, vmlab.KernelTests(), keptTests)
	}}
	if pulse != "" { // a pulse wants an idle host
		test.begin()
		if err := test.end(); err != nil {
			return err
		}
	}
	lab, err := vmlab.StartLab(vmlab.LabOptions{
		Dir: dir, Logs: logs, Kernel: kernel, Init: filepath.Join(build, "guest"), Preload: filepath.Join(build, "wake.so"), HostTime: pulse != "",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	scenarios := vmlab.Scenarios()
	if pulse != "" {
		scenarios = vmlab.KernelPulseScenarios(pulse)
	}
	var results []*vmlab.Result
	for i, s := range scenarios {
		if i > 0 && !strings.Contains(s.Name, only) {
			continue
		}
		if s.Coarse && only == "" {
			test.begin()
		}
		fmt.Fprintf(os.Stderr, "vmlab: %s\n", s.Name)
		done, err := perform(lab, s, precise)
		results = append(results, done...)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.Name, err), vmlab.Print(os.Stdout, results, precise), test.end())
		}
	}
	results, err = vmlab.RerunFailed(lab.Perform, results, kept)
	err = errors.Join(err, vmlab.Print(os.Stdout, results, precise), checkAlerts(lab, results))
	if pulse != "" {
		return err
	}
	return errors.Join(err, test.end())
}

// rules is the directory of the alert rules, from the root of a checkout.
const rules = "deploy/prometheus/rules"

func checkAlerts(lab *vmlab.Lab, results []*vmlab.Result) error {
	fired, err := lab.CheckAlerts(context.Background(), rules, results)
	if err == nil {
		fmt.Printf("PASS  alerts: over what the guests exported promtool saw those of %d scenarios fire, each in its own; none in the steady state\n", fired)
	}
	return err
}

// most is how often a scenario is run that a busy host has spoiled: a clock that is not
// as good as it must be is so every time.
const most = 3

func perform(lab *vmlab.Lab, s vmlab.Scenario, repeat bool) (results []*vmlab.Result, err error) {
	for range most {
		r, err := lab.Perform(s)
		if err != nil {
			return results, err
		}
		results = append(results, r)
		if !repeat || !r.Spoiled() {
			break
		}
		r.Repeated = len(results) < most
	}
	return results, nil
}

// sideRun is the kernel tests, which run beside the scenarios that do not mind.
type sideRun struct {
	start  func() ([]vmlab.Passed, error)
	done   chan struct{}
	passed []vmlab.Passed
	err    error
}

// begin starts them, once.
func (s *sideRun) begin() {
	if s.done != nil {
		return
	}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.passed, s.err = s.start()
	}()
}

// end waits for them and tells of those that passed.
func (s *sideRun) end() error {
	if s.done == nil {
		return nil
	}
	<-s.done
	for _, p := range s.passed {
		fmt.Printf("PASS  %s in a guest of its own, %.0f s\n", p.Name, p.Took.Seconds())
	}
	return s.err
}

// testsName is the guest of the kernel tests.
const testsName = "tests"
