package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxReruns limits the reruns of one run. More failures have one cause, which is not chance.
	maxReruns = 10
	// maxFlaky is the largest number of flaky tests in a run that passes.
	maxFlaky = 3
)

// rerun is a second run of a failed test, alone, or of those tests of a package that its process ended or kept from starting.
type rerun struct {
	command []string
	result  *run
	err     error // it did not run
	passed  bool
	// flaky: it passed, and no other failure of the package explains the first result.
	flaky bool
	// file has the first output of a flaky test.
	file string
}

// rerunFailed runs again what failed. execute returns the events of a command.
func (r *run) rerunFailed(execute func(command []string) ([]byte, error)) {
	n := 0
	for _, o := range slices.Clone(r.all) {
		command := o.rerunCommand()
		if command == nil {
			continue
		}
		if n++; n > maxReruns {
			return
		}
		o.rerun = &rerun{command: command}
		out, err := execute(command)
		if err == nil {
			o.rerun.result, err = read(bytes.NewReader(out))
		}
		if o.rerun.err = err; err != nil {
			continue
		}
		o.rerun.passed = o.passesIn(o.rerun.result)
		o.rerun.flaky = o.rerun.passed && (o.name != "" || len(o.failedTests()) == 0)
		if o.rerun.passed && o.name == "" && o.crashed() { // tests of the package ended here only
			r.all = append(r.all, o.rerun.result.all...)
		}
	}
}

// rerunCommand is the command that runs a failed test alone, or the rest of a crashed package; nil if nothing is to be run.
// No second run excuses a data race, which is a fault whenever it occurs, or the end of a whole stage, which has kept
// other packages from starting.
func (o *entry) rerunCommand() []string {
	if o.result != "fail" || o.stage == nil || o.unbuilt || o.name == "" && o.unfinished || strings.Contains(o.output(), "WARNING: DATA RACE") {
		return nil
	}
	var which string
	switch {
	case o.name != "" && o.top() == o && !o.unfinished:
		which = "-run=^" + regexp.QuoteMeta(o.name) + "$"
	case o.name == "" && o.crashed():
		var done []string
		for _, t := range o.parts {
			if !t.unfinished {
				done = append(done, regexp.QuoteMeta(t.name))
			}
		}
		which = "-skip=^(" + strings.Join(done, "|") + ")$"
	case o.name == "" && len(o.failedTests()) == 0: // the process failed after its tests
		which = "-skip=^$"
	default:
		return nil
	}
	return append(slices.Clone(o.stage.command), "-count=1", which, o.pkg)
}

// crashed reports whether the process of a package ended before its last test, by a panic, a time limit, an exit or a signal.
func (o *entry) crashed() bool { return !o.complete }

// failedTests are the tests of a package that failed by themselves.
func (o *entry) failedTests() (failed []*entry) {
	for _, t := range o.parts {
		if t.result == "fail" && !t.unfinished {
			failed = append(failed, t)
		}
	}
	return failed
}

// passesIn reports whether it passed in a rerun: a test by itself, the rest of a package without any failure.
func (o *entry) passesIn(r *run) (passed bool) {
	for _, again := range r.all {
		if again.result == "fail" {
			return false
		}
		if again.pkg == o.pkg && again.name == o.name {
			passed = again.result == "pass"
		}
	}
	return passed
}

// excused reports whether what failed passed in a rerun.
func (o *entry) excused() bool {
	top := o.top()
	switch {
	case top == nil:
		failed := o.failedTests()
		if slices.ContainsFunc(failed, func(t *entry) bool { return !t.excused() }) {
			return false
		}
		return o.passedAgain() || o.rerun == nil && o.complete && len(failed) > 0
	case top.unfinished:
		return top.parent != nil && top.parent.passedAgain()
	}
	return top.passedAgain()
}

func (o *entry) passedAgain() bool { return o.rerun != nil && o.rerun.passed }

// keepFlaky writes the first output of each flaky test to a file in dir, which then has those of this run only.
func (r *run) keepFlaky(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, prefix+"*.txt"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, o := range r.all {
		if o.rerun == nil || !o.rerun.flaky {
			continue
		}
		o.rerun.file = filepath.Join(dir, prefix+strings.ReplaceAll(strings.Trim(o.pkg+"."+o.name, "."), "/", "-")+".txt")
		text := fmt.Sprintf("stage: %s\nalone: %s\n\n%s", o.stage.title, strings.Join(o.rerun.command, " "), o.output())
		if err := os.WriteFile(o.rerun.file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// prefix begins the names of this program's files in the directory of flaky tests, which other programs share.
const prefix = "test-"
