package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"oneway.example/tests/flaky"
)

// maxReruns limits the reruns of one run. More failures have one cause, which is not chance.
const maxReruns = 10

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
		which = "-run=" + o.pattern()
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

// failedParts are the subtests that failed, if the test failed because of them alone.
func (o *entry) failedParts() (failed []*entry) {
	if o.cause() != "" {
		return nil
	}
	for _, p := range o.parts {
		if p.result == "fail" {
			failed = append(failed, p)
		}
	}
	return failed
}

// pattern matches a test. If it failed because of subtests alone, only these run.
func (o *entry) pattern() string {
	var parts []string
	for _, p := range o.failedParts() {
		parts = append(parts, regexp.QuoteMeta(strings.TrimPrefix(p.name, o.name+"/")))
	}
	pattern := "^" + regexp.QuoteMeta(o.name) + "$"
	if len(parts) > 0 && !strings.Contains(strings.Join(parts, ""), "/") { // a slash in a name divides a pattern
		pattern += "/^(" + strings.Join(parts, "|") + ")$"
	}
	return pattern
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

// passesIn reports whether it passed in a rerun without any failure: a test with the subtests that failed, or a package.
func (o *entry) passesIn(r *run) bool {
	passed := map[string]bool{}
	for _, again := range r.all {
		if again.result == "fail" {
			return false
		}
		passed[again.name] = again.result == "pass" && again.pkg == o.pkg
	}
	return passed[o.name] && !slices.ContainsFunc(o.failedParts(), func(p *entry) bool { return o.name != "" && !passed[p.name] })
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

// keepFlaky writes the first output of each flaky test to a file in dir. The names of the files begin with prefix.
func (r *run) keepFlaky(dir, prefix string) error {
	kept, err := flaky.Open(dir, prefix)
	if err != nil {
		return err
	}
	for _, o := range r.all {
		if o.rerun == nil || !o.rerun.flaky {
			continue
		}
		text := fmt.Sprintf("stage: %s\nalone: %s\n\n%s", o.stage.title, strings.Join(o.rerun.command, " "), o.output())
		if o.rerun.file, err = kept.Add(strings.Trim(o.pkg+"."+o.name, "."), text); err != nil {
			return err
		}
	}
	return nil
}
