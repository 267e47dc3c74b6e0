package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oneway.example/tests/standstill"
)

// stage is a go test of several packages.
type stage struct {
	title    string
	command  []string // without the packages
	packages []string // import paths
	ended    bool
	code     int // exit status of the command; -1 after a signal
	// still are the times in which this machine stood still.
	still []standstill.Span
}

// importPaths are the packages that the arguments of a go test name.
func importPaths(command, packages []string) ([]string, error) {
	i := slices.Index(command, "test")
	if i < 1 || filepath.Base(command[i-1]) != "go" {
		return nil, fmt.Errorf("command %q: expected go test", command)
	}
	list := append(slices.Clone(command[:i]), "list")
	if i+2 < len(command) && command[i+1] == "-C" {
		list = append(list, command[i+1:i+3]...)
	}
	list = append(append(list, "-e"), packages...) // go test reports those that do not load
	out, err := exec.Command(list[0], list[1:]...).Output()
	if err != nil {
		return nil, fmt.Errorf("%q: %w", list, err)
	}
	return strings.Fields(string(out)), nil
}

// runStage runs a stage, appends its events to the log and shows them in w.
func runStage(w io.Writer, log, title string, command, packages []string) (failed bool, err error) {
	paths, err := importPaths(command, packages)
	if err != nil {
		return true, err
	}
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return true, err
	}
	in, out := io.Pipe()
	shown := make(chan error)
	go func() { shown <- show(in, w) }()
	both := io.MultiWriter(f, out)
	err = writeEvent(both, event{Action: "stage", Output: title, Command: command, Packages: paths})
	code := 0
	if err == nil {
		code, err = startWatched(slices.Concat(command, packages), both)
	}
	if err == nil {
		err = writeEvent(both, event{Action: stageEnd, Code: code})
	}
	_ = out.Close() // it always succeeds
	return code != 0 || err != nil, errors.Join(err, <-shown, f.Close())
}

// longStill is the shortest time that counts as one in which this machine stood still. Tests that measure tell shorter ones
// themselves (package standstill), and make busy makes shorter ones on purpose, beside which no failure is excused.
const longStill = 500 * time.Millisecond

// stoodStill is the action of the event that has a time in which this machine stood still.
const stoodStill = "stood-still"

// startWatched is start, and writes when this machine stood still meanwhile.
func startWatched(command []string, w io.Writer) (code int, err error) {
	watch, end, err := standstill.Start()
	if err != nil {
		return 0, err
	}
	defer end()
	code, err = start(command, w)
	for _, s := range watch.Spans() {
		if lasted := s.End.Sub(s.Begin); err == nil && lasted >= longStill {
			err = writeEvent(w, event{Action: stoodStill, Time: s.Begin.Time(), Elapsed: lasted.Seconds()})
		}
	}
	return code, err
}

// stageEnd is the action of the event that ends a stage.
const stageEnd = "stage-end"

func writeEvent(w io.Writer, e event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}

// start runs a command and returns its exit status, -1 after a signal; err is set if it did not start.
func start(command []string, w io.Writer) (code int, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Run()
	if status := (*exec.ExitError)(nil); errors.As(err, &status) {
		return status.ExitCode(), nil
	}
	return 0, err
}

// execute returns the output of a command, which it also writes to log.
func execute(command []string, log io.Writer) ([]byte, error) {
	var b bytes.Buffer
	_, err := start(command, io.MultiWriter(&b, log)) // the output contains the failures
	return b.Bytes(), err
}
