package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

// stage is a go test of several packages.
type stage struct {
	title   string
	command []string // without the packages
	ended   bool
	failed  bool
}

// runStage runs a stage, appends its events to the log and shows them in w.
func runStage(w io.Writer, log, title string, command, packages []string) (failed bool, err error) {
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return true, err
	}
	in, out := io.Pipe()
	shown := make(chan error)
	go func() { shown <- show(in, w) }()
	both := io.MultiWriter(f, out)
	err = writeEvent(both, event{Action: "stage", Output: title, Command: command})
	if err == nil {
		failed, err = start(slices.Concat(command, packages), both)
	}
	if err == nil {
		err = writeEvent(both, event{Action: endAction(failed)})
	}
	_ = out.Close() // it always succeeds
	return failed || err != nil, errors.Join(err, <-shown, f.Close())
}

// Actions of the event that ends a stage.
const (
	stagePassed = "stage-passed"
	stageFailed = "stage-failed"
)

func endAction(failed bool) string {
	if failed {
		return stageFailed
	}
	return stagePassed
}

func writeEvent(w io.Writer, e event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}

// start runs a command and reports whether it failed; err is set if it did not start.
func start(command []string, w io.Writer) (failed bool, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Run()
	if status := (*exec.ExitError)(nil); errors.As(err, &status) {
		return true, nil
	}
	return err != nil, err
}

// execute returns the output of a command, which it also writes to log.
func execute(command []string, log io.Writer) ([]byte, error) {
	var b bytes.Buffer
	_, err := start(command, io.MultiWriter(&b, log)) // the output contains the failures
	return b.Bytes(), err
}
