package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"oneway.example/tests/flaky"
)

// Limits of a failure's printed lines, of the lines from its beginning, and of the lines of a second output.
const (
	maxLines      = 60
	firstLines    = 20
	maxAgainLines = 20
)

// report prints the failures, the flaky tests, and the numbers of tests. expected are the names of tests that may be skipped, the
// first word of each line that does not begin with #.
func (r *run) report(expected string, w io.Writer) (failed bool) {
	may := map[string]bool{}
	for line := range strings.Lines(expected) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			may[words[0]] = true
		}
	}
	count, skipped := map[string]int{}, map[string]bool{}
	for _, o := range r.all {
		if o.name == "" && o.result == "pass" && len(o.parts) == 0 && o.stage != nil {
			o.result = "fail"
		}
		if o.result == "skip" && o.name != "" && !may[o.name] && !o.saysSo() {
			skipped[o.name] = true
		}
		if o.flaky() {
			count["flaky"]++
			fmt.Fprintf(w, "\nFLAKY: %s passed when run alone: %s\nits first output, kept in %s:\n%s", o, strings.Join(o.rerun.command, " "), o.rerun.file, cut(o.output(), maxAgainLines))
		}
		if o.rerun != nil && o.rerun.passed && o.stoodStill() > 0 {
			fmt.Fprintf(w, "\n%s failed while this machine stood still for %v, and passed when run alone: %s\nits first output:\n%s", o,
				o.stoodStill().Round(time.Millisecond), strings.Join(o.rerun.command, " "), cut(o.output(), maxAgainLines))
			if o.name != "" {
				count["pass"]++
			}
		}
		excused := o.result == "fail" && o.excused()
		switch {
		case o.top() != o || excused:
		case o.undecided():
			count[o.reportUndecided(w)]++
		default:
			count[o.result]++
		}
		if o.result == "fail" && !excused {
			failed = true
			o.report(w)
		}
	}
	if failed && r.said.Len() > 0 {
		fmt.Fprintf(w, "\nthe go command said:\n%s", cut(r.said.String(), maxLines))
	}
	for _, s := range r.stages {
		if why := r.broken(s); why != "" {
			failed = true
			fmt.Fprintf(w, "\nfailed: stage %s, %s\n%s", s.title, why, cut(r.said.String(), maxLines))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(w, "\nskipped, and not expected to be (tests/expected-skips.txt): %s\n", name)
	}
	if count["flaky"] > flaky.Max {
		fmt.Fprintf(w, "\n%d flaky tests: at most %d are accepted\n", count["flaky"], flaky.Max)
	}
	if n := count["cannot tell"]; n > 0 {
		fmt.Fprintf(w, "\n%d tests cannot tell: at most %d are accepted\n", n, maxUndecided)
	}
	fmt.Fprintf(w, "\n%d passed, %d flaky, %d failed, %d skipped\n", count["pass"], count["flaky"], count["fail"], count["skip"])
	return failed || len(skipped) > 0 || count["flaky"] > flaky.Max || count["cannot tell"] > maxUndecided
}

// broken is why no rerun excuses a stage; empty if its go command ended by itself, reported each package, and failed only
// with a test or a package.
func (r *run) broken(s *stage) string {
	switch {
	case !s.ended:
		return "its command did not end"
	case s.code != 0 && s.code != 1:
		return fmt.Sprintf("exit status %d, want 0 or 1", s.code)
	}
	failed, missing := false, slices.Clone(s.packages)
	for _, o := range r.all {
		if o.stage == s {
			failed = failed || o.result == "fail"
			missing = slices.DeleteFunc(missing, func(pkg string) bool { return pkg == o.pkg })
		}
	}
	switch {
	case len(missing) > 0:
		return "no result of package " + missing[0]
	case s.code != 0 && !failed:
		return "without a failed test"
	}
	return ""
}

// String is the name of a test with its package.
func (o *entry) String() string {
	if o.name == "" {
		return fmt.Sprintf("the package itself (%s)", o.pkg)
	}
	return fmt.Sprintf("%s (%s)", o.name, o.pkg)
}

// verdict is a line that only reports the failure of a test or package, as the heading does.
var verdict = regexp.MustCompile(`(?m)^(\s*--- FAIL: .*|FAIL(\t.*)?|exit status 1|-test.shuffle .*)\n`)

// cause is the text of its failure; empty if it has only lines that verdict matches.
func (o *entry) cause() string {
	if text := verdict.ReplaceAllString(o.text.String(), ""); strings.TrimSpace(text) != "" {
		return text
	}
	return ""
}

// report prints a failure, unless its parts print it, or, for a subtest's panic, its parent. A second failure follows the first.
func (o *entry) report(w io.Writer) {
	text := o.cause()
	if text != "" || !o.failedPart && (o.parent == nil || o.parent.cause() == "") {
		fmt.Fprintf(w, "\nfailed: %s\n%s", o, cut(text, maxLines))
	}
	if o.rerun == nil {
		return
	}
	fmt.Fprintf(w, "\nand again, alone: %s: %s\n", o, strings.Join(o.rerun.command, " "))
	if o.rerun.err != nil {
		fmt.Fprintln(w, o.rerun.err)
		return
	}
	for _, again := range o.rerun.result.all {
		if again.result == "fail" {
			fmt.Fprint(w, cut(again.cause(), maxAgainLines))
		}
	}
}

// cut is at most so many lines of a text: its first lines and its last ones, or, where it ends with a panic, from there on.
func cut(text string, most int) string {
	lines := slices.Collect(strings.Lines(text))
	if len(lines) <= most {
		return text
	}
	first := min(firstLines, most/2)
	if i := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ")
	}); i >= 0 {
		lines, first = lines[i:], most-1
	}
	if len(lines) <= most {
		return strings.Join(lines, "")
	}
	last := lines[len(lines)-(most-1-first):]
	return fmt.Sprintf("%s(%d lines are left out)\n%s", strings.Join(lines[:first], ""), len(lines)-most+1, strings.Join(last, ""))
}
