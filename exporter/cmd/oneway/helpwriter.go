package main

import (
	"io"
	"os"
)

// helpWriter writes help and version. The parser of arguments panics on an error of writing, so that an error ends the process here.
type helpWriter struct{ io.Writer }

// Write writes a part of the help.
func (w helpWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err != nil {
		newLiveLine(os.Stderr).say("oneway: print the help: %v", err)
		os.Exit(exitFailure)
	}
	return n, nil
}
