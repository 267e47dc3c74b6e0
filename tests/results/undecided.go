package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"oneway.example/tests/flaky"
	"oneway.example/tests/standstill"
)

// maxUndecided limits the tests that cannot tell, also alone, in a run that passes: a machine on which more of them cannot has tested
// too little.
const maxUndecided = flaky.Max

// saysSo reports whether it skipped since it cannot tell: its host stood still (package standstill).
func (o *entry) saysSo() bool {
	return o.result == "skip" && o.name != "" && strings.Contains(o.text.String(), standstill.Words)
}

// undecided reports whether a test that has not failed cannot tell, or a part of it.
func (o *entry) undecided() bool {
	return o.result != "fail" && o.name != "" && (o.saysSo() || slices.ContainsFunc(o.parts, (*entry).undecided))
}

// undecided reports whether a test of the run cannot tell.
func (r *run) undecided() bool { return slices.ContainsFunc(r.all, (*entry).saysSo) }

// failed reports whether anything of the run failed.
func (r *run) failed() bool {
	return slices.ContainsFunc(r.all, func(o *entry) bool { return o.result == "fail" })
}

// undecidedCommand is the command that runs a top-level test that cannot tell once more, alone; nil for any other.
func (o *entry) undecidedCommand() []string {
	if o.stage == nil || o.top() != o || !o.undecided() {
		return nil
	}
	return append(slices.Clone(o.stage.command), "-count=1", "-run=^"+o.name+"$", o.pkg)
}

// decide takes the second run of a test that cannot tell: what fails there has failed.
func (o *entry) decide() {
	if o.rerun.err == nil && o.rerun.result.failed() {
		o.result = "fail"
	}
}

// stoodStill is the longest time in which this machine stood still while a test or package failed, zero without any. Then its
// failure alone tells nothing: what passes in a second run counts as passed.
func (o *entry) stoodStill() (longest time.Duration) {
	if o.stage == nil || o.end == 0 {
		return 0
	}
	for _, s := range o.stage.still {
		if s.End > o.begin && s.Begin < o.end {
			longest = max(longest, s.End.Sub(s.Begin))
		}
	}
	return longest
}

// reportUndecided prints a top-level test that cannot tell, and returns the word for its count.
func (o *entry) reportUndecided(w io.Writer) (counted string) {
	counted = "cannot tell"
	switch {
	case o.rerun == nil:
		fmt.Fprintf(w, "\nCANNOT TELL: %s\n", o)
	case o.rerun.err != nil:
		fmt.Fprintf(w, "\nCANNOT TELL: %s; %s: %v\n", o, strings.Join(o.rerun.command, " "), o.rerun.err)
	case o.rerun.result.undecided():
		fmt.Fprintf(w, "\nCANNOT TELL: %s, nor alone: %s\n", o, strings.Join(o.rerun.command, " "))
	default:
		counted = "pass"
		fmt.Fprintf(w, "\n%s could not tell beside other tests, and passed when run alone: %s\n", o, strings.Join(o.rerun.command, " "))
	}
	fmt.Fprint(w, cut(o.output(), maxAgainLines))
	return counted
}
