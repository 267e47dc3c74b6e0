package main

import (
	"io"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/standstill"
)

// entry is a test, or a package (its name is empty), in one stage.
type entry struct {
	pkg, name string
	result    string // pass, fail, skip; empty while it runs
	// begin and end are its times; end is zero if the process ended before it.
	begin, end instant.Time
	stage      *stage
	text       strings.Builder
	// parent is the test of a subtest, or the package of a test.
	parent *entry
	// failedPart: a part of it failed, which is printed itself.
	failedPart bool
	// unfinished: the process ended before the test, or the stage before the package.
	unfinished bool

	// These are of packages. complete: the process reached its end; unbuilt: the build failed.
	complete, unbuilt bool

	// parts are the tests of a package, or the subtests of a test, that began.
	parts []*entry
	rerun *rerun
}

// owner is the package of a test; a package itself.
func (o *entry) owner() *entry {
	for o.parent != nil {
		o = o.parent
	}
	return o
}

// top is the top-level test that it is or belongs to; nil for a package.
func (o *entry) top() *entry {
	if o.name == "" {
		return nil
	}
	for o.parent != nil && o.parent.name != "" {
		o = o.parent
	}
	return o
}

// output is its own text and the texts of its parts.
func (o *entry) output() string {
	var all strings.Builder
	all.WriteString(o.text.String())
	for _, p := range o.parts {
		all.WriteString(p.output())
	}
	return all.String()
}

// run has the entries of all stages, in the order of their begin.
type run struct {
	all    []*entry
	stages []*stage
	open   map[string]*entry // by package and name, of the current stage
	builds map[string]string
	said   strings.Builder // by the go command itself
}

// read takes the events of stages.
func read(in io.Reader) (*run, error) {
	r := &run{open: map[string]*entry{}, builds: map[string]string{}}
	if err := each(in, r.take); err != nil {
		return nil, err
	}
	for _, o := range slices.Clone(r.all) {
		if o.name == "" && o.result == "" { // killed, and so was the go command
			r.endTests(o.pkg)
			o.endEarly()
		}
	}
	return r, nil
}

// entry returns the open entry of an event, or begins one.
func (r *run) entry(e event) *entry {
	key := e.Package + " " + e.Test
	if r.open[key] == nil || e.Action == "start" || e.Action == "run" { // the same package again belongs to the next stage
		o := &entry{pkg: e.Package, name: e.Test, begin: instant.FromTime(e.Time)}
		if len(r.stages) > 0 {
			o.stage = r.stages[len(r.stages)-1]
		}
		if e.Test != "" {
			if o.parent = r.parent(e); o.parent != nil {
				o.parent.parts = append(o.parent.parts, o)
			}
		}
		r.open[key] = o
		r.all = append(r.all, o)
	}
	return r.open[key]
}

// parent is the innermost open test of a subtest, whose own name may have slashes, or the package of a test.
func (r *run) parent(e event) *entry {
	for name := e.Test; name != ""; {
		name = name[:max(strings.LastIndex(name, "/"), 0)]
		if o := r.open[e.Package+" "+name]; o != nil {
			return o
		}
	}
	return nil
}

// fail marks it as failed, and its parents as having a failed part.
func (o *entry) fail() {
	o.result = "fail"
	for p := o.parent; p != nil; p = p.parent {
		p.failedPart = true
	}
}

func (o *entry) endEarly() {
	o.unfinished = true
	o.text.WriteString("(it did not end)\n")
	o.fail()
}

func (r *run) take(e event) {
	switch e.Action {
	case "stage":
		r.stages = append(r.stages, &stage{title: e.Output, command: e.Command, packages: e.Packages})
	case stageEnd:
		if len(r.stages) > 0 {
			s := r.stages[len(r.stages)-1]
			s.ended, s.code = true, e.Code
		}
	case stoodStill:
		if begin := instant.FromTime(e.Time); len(r.stages) > 0 {
			s := r.stages[len(r.stages)-1]
			s.still = append(s.still, standstill.Span{Begin: begin, End: begin.Add(time.Duration(e.Elapsed * 1e9))})
		}
	case "said":
		r.said.WriteString(e.Output)
	case "build-output":
		r.builds[e.ImportPath] += e.Output
	case "start", "run":
		r.entry(e)
	case "output":
		o := r.entry(e)
		if !frame.MatchString(e.Output) {
			o.text.WriteString(e.Output)
		}
		if e.Test == "" && (e.Output == "FAIL\n" || e.Output == "PASS\n") {
			o.complete = true
		}
	case "pass", "skip":
		o := r.entry(e)
		o.result, o.end = e.Action, instant.FromTime(e.Time)
	case "fail":
		o := r.entry(e)
		o.end = instant.FromTime(e.Time)
		o.text.WriteString(r.builds[e.FailedBuild])
		o.unbuilt = e.FailedBuild != "" || strings.Contains(e.Output, "[setup failed]")
		if e.Test == "" { // the end of a process ends its tests
			r.endTests(e.Package)
		}
		o.fail()
	}
}

// endTests marks tests of a package without an end as failed.
func (r *run) endTests(pkg string) {
	for _, o := range slices.Backward(r.all) { // subtests before their parents
		if o.result == "" && o.name != "" && o.pkg == pkg && r.open[o.pkg+" "+o.name] == o {
			o.endEarly()
		}
	}
}
