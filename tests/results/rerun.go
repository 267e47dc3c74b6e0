package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"oneway.example/tests/flaky"
)

// maxReruns limits the reruns of one run. More failures have one cause, which is not chance. A failure while this machine stood still
// does not count, nor does a test that cannot tell.
const maxReruns = 10

// rerun is a second run of a failed test, alone, or of a package that crashed or failed after its tests.
type rerun struct {
	command []string
	result  *run
	err     error // it did not run
	passed  bool
	// file has the first output of a flaky test.
	file string
}

// rerunFailed runs again what failed. execute returns the events of a command.
func (r *run) rerunFailed(execute func(command []string) ([]byte, error)) {
	n := 0
	for _, o := range slices.Clone(r.all) {
		command, again := o.rerunCommand(), o.undecidedCommand()
		if command = append(command, again...); command == nil {
			continue
		}
		if again == nil && o.stoodStill() == 0 {
			n++
		}
		if n > maxReruns {
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
		if again != nil {
			o.decide()
			continue
		}
		o.rerun.passed = o.passesIn(o.rerun.result)
		if o.rerun.passed && o.crashed() {
			r.all = append(r.all, o.endedOnlyIn(o.rerun.result)...)
		}
	}
}

// fault is the report of a data race, or of a state of memory that only a fault of the program leads to.
var fault = regexp.MustCompile(`WARNING: DATA RACE|race detected during execution|fatal error:`)

// rerunCommand is the command that runs a failed test alone, or a whole package that crashed, since a test that had ended may
// be the cause; nil if nothing is to be run. No second run excuses a fault, which may be in the output of another test, or the
// end of a whole stage, which has kept other packages from starting.
func (o *entry) rerunCommand() []string {
	owner := o.owner()
	if o.result != "fail" || o.stage == nil || owner.unbuilt || owner.name == "" && owner.unfinished || fault.MatchString(owner.output()) {
		return nil
	}
	command := append(slices.Clone(o.stage.command), "-count=1")
	switch {
	case o == owner && (o.crashed() || len(o.failedTests()) == 0): // or the process failed after its tests
	case o != owner && o.top() == o && !owner.crashed():
		command = append(command, "-run="+o.pattern())
	default:
		return nil
	}
	return append(command, o.pkg)
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
func (o *entry) crashed() bool {
	return o.name == "" && (!o.complete || slices.ContainsFunc(o.parts, func(t *entry) bool { return t.unfinished }))
}

// failedTests are the tests of a package that failed.
func (o *entry) failedTests() (failed []*entry) {
	for _, t := range o.parts {
		if t.result == "fail" {
			failed = append(failed, t)
		}
	}
	return failed
}

// passesIn reports whether a test or a package passed in a rerun without any failure, and so did each part that had failed.
func (o *entry) passesIn(r *run) bool {
	passed := map[string]bool{}
	for _, again := range r.all {
		if again.result == "fail" || again.saysSo() {
			return false
		}
		passed[again.name] = again.result == "pass" && again.pkg == o.pkg
	}
	return o.failuresIn(passed)
}

// failuresIn reports whether a set of names has the test or the package, if it failed, and each part that failed.
func (o *entry) failuresIn(names map[string]bool) bool {
	return (o.result != "fail" || names[o.name]) && !slices.ContainsFunc(o.parts, func(p *entry) bool { return !p.failuresIn(names) })
}

// endedOnlyIn are the tests of a rerun of a crashed package that did not pass before the crash.
func (o *entry) endedOnlyIn(r *run) []*entry {
	ended := map[string]bool{}
	for _, t := range o.parts {
		ended[t.name] = t.result != "fail"
	}
	return slices.DeleteFunc(slices.Clone(r.all), func(again *entry) bool {
		return again.name == "" || ended[again.top().name]
	})
}

// flaky reports whether it passed in a rerun, and no standstill of this machine explains the failure.
func (o *entry) flaky() bool { return o.rerun != nil && o.rerun.passed && o.stoodStill() == 0 }

// excused reports whether what failed passed in a rerun: of the package, of the test, or of each failed test of the package.
func (o *entry) excused() bool {
	owner := o.owner()
	switch {
	case owner.rerun != nil:
		return owner.rerun.passed
	case o != owner:
		return o.top().rerun != nil && o.top().rerun.passed
	}
	failed := o.failedTests()
	return o.complete && len(failed) > 0 && !slices.ContainsFunc(failed, func(t *entry) bool { return !t.excused() })
}

// keepFlaky writes the first output of each flaky test to a file in dir. The names of the files begin with prefix.
func (r *run) keepFlaky(dir, prefix string) error {
	kept, err := flaky.Open(dir, prefix)
	if err != nil {
		return err
	}
	for _, o := range r.all {
		if !o.flaky() {
			continue
		}
		text := fmt.Sprintf("stage: %s\nalone: %s\n\n%s", o.stage.title, strings.Join(o.rerun.command, " "), o.output())
		if o.rerun.file, err = kept.Add(o.stage.title+" "+strings.Trim(o.pkg+"."+o.name, "."), text); err != nil {
			return err
		}
	}
	return nil
}
