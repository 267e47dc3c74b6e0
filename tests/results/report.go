package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Limits of a failure's printed lines, and how many of them are from its beginning.
const (
	mostLines  = 60
	firstLines = 20
)

// one is a test, or a package (its name is empty), in one stage.
type one struct {
	pkg, name, result string // result: pass, fail, skip; empty while it runs
	lines             strings.Builder
	// up is its parent: the test of a subtest, the package of a test.
	up *one
	// below: a part of it failed, which is printed itself.
	below bool
	// ran: a test of the package began.
	ran bool
}

// run has the events of all stages.
type run struct {
	all    []*one
	open   map[string]*one // by package and name, of the current stage
	builds map[string]string
	said   strings.Builder // by the go command itself
}

func (r *run) of(e event) *one {
	key := e.Package + " " + e.Test
	if r.open[key] == nil || e.Action == "start" || e.Action == "run" { // the same package again belongs to the next stage
		r.open[key] = &one{pkg: e.Package, name: e.Test}
		if e.Test != "" {
			r.open[key].up = r.open[e.Package+" "+e.Test[:max(strings.LastIndex(e.Test, "/"), 0)]]
			if up := r.open[key].up; up != nil {
				up.ran = true
			}
		}
		r.all = append(r.all, r.open[key])
	}
	return r.open[key]
}

// fail marks it as failed, and its parents as having a failed part.
func (o *one) fail() {
	o.result = "fail"
	for up := o.up; up != nil; up = up.up {
		up.below = true
	}
}

func (r *run) take(e event) {
	switch e.Action {
	case "said":
		r.said.WriteString(e.Output)
	case "build-output":
		r.builds[e.ImportPath] += e.Output
	case "start", "run":
		r.of(e)
	case "output":
		if o := r.of(e); !frame.MatchString(e.Output) {
			o.lines.WriteString(e.Output)
		}
	case "pass", "skip":
		r.of(e).result = e.Action
	case "fail":
		o := r.of(e)
		o.lines.WriteString(r.builds[e.FailedBuild])
		if e.Test == "" { // the end of a process ends its tests
			r.unfinished(e.Package)
		}
		o.fail()
	}
}

// unfinished marks tests of a package without an end as failed.
func (r *run) unfinished(pkg string) {
	for _, o := range slices.Backward(r.all) { // subtests before their parents
		if o.result == "" && o.name != "" && o.pkg == pkg && r.open[o.pkg+" "+o.name] == o {
			o.lines.WriteString("(it did not end)\n")
			o.fail()
		}
	}
}

// report prints the failures, and the numbers of passed, failed and skipped tests. expected are the names of tests
// that may be skipped, the first word of each line that does not begin with #.
func report(in io.Reader, expected string, w io.Writer) (failed bool, err error) {
	r := run{open: map[string]*one{}, builds: map[string]string{}}
	if err := each(in, r.take); err != nil {
		return true, err
	}
	for _, o := range slices.Clone(r.all) {
		if o.name == "" && o.result == "" { // killed, and so was the go command
			o.lines.WriteString("(it did not end)\n")
			r.unfinished(o.pkg)
			o.fail()
		}
	}
	may := map[string]bool{}
	for line := range strings.Lines(expected) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			may[words[0]] = true
		}
	}
	count, skipped := map[string]int{}, map[string]bool{}
	for _, o := range r.all {
		if o.name != "" && !strings.Contains(o.name, "/") {
			count[o.result]++
		}
		if o.result == "skip" && o.name != "" && !may[o.name] {
			skipped[o.name] = true
		}
		if o.name == "" && o.result == "pass" && !o.ran {
			o.result = "fail"
		}
		if o.result == "fail" {
			failed = true
			o.report(w)
		}
	}
	if failed && r.said.Len() > 0 {
		fmt.Fprintf(w, "\nthe go command said:\n%s", cut(r.said.String()))
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(w, "\nskipped, and not expected to be (tests/expected-skips.txt): %s\n", name)
	}
	fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"])
	return failed || len(skipped) > 0, nil
}

// verdict is a line that only reports the failure of a test or package, as the heading does.
var verdict = regexp.MustCompile(`(?m)^(\s*--- FAIL: .*|FAIL(\t.*)?|exit status 1|-test.shuffle .*)\n`)

// found is the text of its failure.
func (o *one) found() string {
	if text := verdict.ReplaceAllString(o.lines.String(), ""); strings.TrimSpace(text) != "" {
		return text
	}
	return ""
}

// report prints a failure, unless its parts print it, or, for a subtest's panic, its parent.
func (o *one) report(w io.Writer) {
	text, name := o.found(), o.name
	if text == "" && (o.below || o.up != nil && o.up.found() != "") {
		return
	}
	if name == "" {
		name = "the package itself"
	}
	fmt.Fprintf(w, "\nfailed: %s (%s)\n%s", name, o.pkg, cut(text))
}

// cut is at most mostLines of a text: its first lines and its last ones, or, where it ends with a panic, from there on.
func cut(text string) string {
	lines := slices.Collect(strings.Lines(text))
	if len(lines) <= mostLines {
		return text
	}
	first := firstLines
	if i := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ")
	}); i >= 0 {
		lines, first = lines[i:], mostLines-1
	}
	if len(lines) <= mostLines {
		return strings.Join(lines, "")
	}
	last := lines[len(lines)-(mostLines-1-first):]
	return fmt.Sprintf("%s(%d lines are left out)\n%s", strings.Join(lines[:first], ""), len(lines)-mostLines+1, strings.Join(last, ""))
}
