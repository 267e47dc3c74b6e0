// Command results reads the output of `go test -json`. `results show` prints it as it arrives, without
// the lines of passed tests. `results report EVENTS EXPECTED` prints, for all stages of a run, whose
// events are in one file, the failures and their last lines, at the end, where a cut log still has
// them. A skip that the file EXPECTED does not list is a failure, and so is a package without a
// test that ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// event is one of `go doc test2json`, or of a build (`go help buildjson`).
type event struct {
	Action, Package, Test, Output string
	// ImportPath is the package of a build, and FailedBuild that of a package whose build failed.
	ImportPath, FailedBuild string
}

func main() {
	var err error
	failed := false
	switch {
	case len(os.Args) == 2 && os.Args[1] == "show":
		err = show(os.Stdin, os.Stdout)
	case len(os.Args) == 4 && os.Args[1] == "report":
		failed, err = tellFiles(os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("arguments are %q, want show, or report EVENTS EXPECTED", os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
	}
	if err != nil || failed {
		os.Exit(1)
	}
}

func tellFiles(events, expected string) (failed bool, err error) {
	list, err := os.ReadFile(expected)
	if err != nil {
		return true, err
	}
	f, err := os.Open(events)
	if err != nil {
		return true, err
	}
	defer f.Close() // it is read only
	return report(f, string(list), os.Stdout)
}

// each gives the events of a stream, one a line. Any other line is output of the go command itself.
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
