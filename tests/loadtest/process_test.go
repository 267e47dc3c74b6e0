package loadtest

import (
	"testing"

	"oneway.example/tests/lab"
	"oneway.example/tests/program"
)

// process is a program under test.
type process struct{ *program.Program }

func start(t *testing.T, host *lab.Host, args ...string) *process {
	t.Helper()
	return &process{program.Start(t, host, binary, args...)}
}
