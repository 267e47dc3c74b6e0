// Command results runs the stages of tests/run.sh and reports their tests.
//
// `results run LOG TITLE COMMAND... -- PACKAGE...` runs one stage: COMMAND is a go test with -json, and its flags. It
// appends the events to LOG and prints them without the lines of passed tests.
//
// `results report LOG EXPECTED DIR` runs each failed test of all stages in LOG once more, alone, with the command of its
// stage; after a crash, its whole package. What passes then is flaky: DIR gets its first output, and more than flaky.Max fail
// the run. A test that cannot tell, as its host stood still (package standstill), also runs once more, and what it cannot tell then is
// counted apart: more than maxUndecided fail the run. A test that failed while this machine stood still for half a second or more and
// passes alone is not flaky. A test that fails again fails the run, and so does a skip that the file EXPECTED does not list, a package without a
// test that ran or without an end, and a go command that a signal ended.
// The failures and their last lines are printed at the end, where a cut log still has them.
//
// The exit status is 1 if a test failed, and 2 if the program could not do its work.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is one of `go doc test2json`, of a build (`go help buildjson`), or of a stage.
type event struct {
	Action, Package, Test, Output string
	// ImportPath is the package of a build, and FailedBuild the one whose failed build ends a package.
	ImportPath, FailedBuild string
	// Command is the command of a stage, and Packages are the import paths of its packages. Only the action stage has them;
	// its Output is the title.
	Command, Packages []string
	// Code is the exit status of the command; -1 after a signal. Only the action stageEnd has it.
	Code int
	// Time and Elapsed, in seconds, are of a test; of the action stoodStill, when it began and how long it lasted.
	Time    time.Time `json:",omitzero"`
	Elapsed float64   `json:",omitempty"`
}

func main() {
	var err error
	failed := false
	args := os.Args[1:]
	switch {
	case len(args) > 3 && args[0] == "run" && slices.Contains(args, "--"):
		i := slices.Index(args, "--")
		failed, err = runStage(os.Stdout, args[1], args[2], args[3:i], args[i+1:])
	case len(args) == 4 && args[0] == "report":
		failed, err = reportFiles(args[1], args[2], args[3])
	default:
		err = fmt.Errorf("arguments are %q, want run LOG TITLE COMMAND -- PACKAGES, or report LOG EXPECTED DIR", args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

func reportFiles(log, expected, dir string) (failed bool, err error) {
	list, err := os.ReadFile(expected)
	if err != nil {
		return true, err
	}
	f, err := os.OpenFile(log, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return true, err
	}
	defer f.Close() // a lost event of a rerun changes no result
	r, err := read(f)
	if err != nil {
		return true, err
	}
	r.rerunFailed(func(command []string) ([]byte, error) {
		fmt.Printf("once more, alone: %s\n", strings.Join(command, " "))
		return execute(command, f)
	})
	if err := r.keepFlaky(dir, strings.TrimSuffix(filepath.Base(log), ".json")); err != nil {
		return true, err
	}
	return r.report(string(list), os.Stdout), nil
}

// each passes the events of a stream, one a line, to f. Any other line is output of the go command itself.
func each(r io.Reader, f func(event)) error {
	for in := bufio.NewReader(r); ; {
		line, err := in.ReadString('\n')
		if line != "" {
			e := event{}
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				e = event{Action: "said", Output: line}
			}
			f(e)
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// frame is a line with the state of a test and no result.
var frame = regexp.MustCompile(`^(=== (RUN|PAUSE|CONT|NAME) |\s*--- (PASS|SKIP): |PASS\n|\?   )`)

// show prints the lines of a top-level test, or of a package, when it ends: packages run in parallel.
func show(r io.Reader, w io.Writer) error {
	held := map[string]*strings.Builder{}
	end := func(key string) {
		if b := held[key]; b != nil {
			fmt.Fprint(w, b)
		}
		delete(held, key)
	}
	err := each(r, func(e event) {
		top, _, _ := strings.Cut(e.Test, "/")
		key := e.Package + " " + top
		switch e.Action {
		case "stage":
			fmt.Fprintf(w, "== %s\n", e.Output)
		case "said", "build-output":
			fmt.Fprint(w, e.Output)
		case "output":
			if held[key] == nil {
				held[key] = &strings.Builder{}
			}
			if !frame.MatchString(e.Output) {
				held[key].WriteString(e.Output)
			}
		case "pass", "fail", "skip":
			if e.Test == top {
				end(key)
			}
		}
	})
	for _, key := range slices.Sorted(maps.Keys(held)) { // what has not ended
		end(key)
	}
	return err
}
