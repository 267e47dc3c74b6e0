// Package tcpdelay compares the timestamps of TCP streams with the log of the emulated link, and with captures.
package tcpdelay

import (
	"os"
	"testing"

	"oneway.example/tests/program"
)

// binary is the program under test, built once; empty without a lab.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(isClient) != "" {
		os.Exit(clientMain())
	}
	os.Exit(program.Main(m.Run, func(built string) { binary = built }))
}
