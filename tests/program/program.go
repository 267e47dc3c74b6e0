// Package program runs a program under test on a host of an emulated network, as package process does.
package program

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	"oneway.example/tests/await"
	"oneway.example/tests/lab"
	"oneway.example/tests/oneway"
	"oneway.example/tests/process"
)

// Timeout is the longest wait for anything.
const Timeout = await.Timeout

// TB is what this package needs of testing.TB.
type TB = process.TB

// Program is a started program.
type Program struct{ *process.Process }

// Start runs a program on a host. It is killed when the test ends, or this process does.
func Start(t TB, host *lab.Host, name string, args ...string) *Program {
	t.Helper()
	return &Program{process.Run(t, host.Command(name, args...))}
}

// Eventually is await.That.
func Eventually(t TB, what string, f func() bool) {
	t.Helper()
	await.That(t, what, f)
}

// Main passes the file of the program `oneway`, which it builds once unless oneway.Program names it, to build, and runs the tests; without a
// lab every test skips, with the reason. It is for TestMain.
func Main(run func() int, build func(binary string)) int {
	return lab.Main(func() int {
		if lab.Available() != nil {
			return run()
		}
		dir, err := os.MkdirTemp("", "oneway-test")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		binary, err := oneway.Build(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		build(binary)
		return run()
	})
}

// Client is an HTTP client on a host.
func Client(t TB, host *lab.Host) *http.Client {
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return host.DialContext(ctx, network, address)
	}}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// Serves waits until the program, an agent, reports at an address that it is healthy.
func (p *Program) Serves(t TB, c *http.Client, address string) {
	t.Helper()
	Eventually(t, "the agent serves", func() bool {
		select {
		case <-p.Done:
			t.Fatalf("the agent has ended: %s", &p.Stderr)
		default:
		}
		r, err := c.Get("http://" + address + "/-/healthy")
		if err != nil {
			return false
		}
		r.Body.Close()
		return true
	})
}
