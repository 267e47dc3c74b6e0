// Package remoteend has helpers for tests of a load test's remote end: of the life of a
// session (package loadserver) and of its traffic.
package remoteend

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/tests/await"
)

// Timeout is the longest wait of Eventually: half of the duration of a stream that does not stop.
const Timeout = 20 * time.Second

// Eventually waits for a condition that another goroutine causes.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !await.Within(Timeout, ok) {
		t.Fatalf("%s: not within %v", what, Timeout)
	}
}

// NothingLeft fails the test if a goroutine of it runs after all its clean-ups.
func NothingLeft(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		if !await.Within(Timeout, func() bool { return runtime.NumGoroutine() <= before }) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
	})
}

// Refusal is the one in an error; it fails the test if there is none.
func Refusal(t *testing.T, err error) *loadcontrol.Refusal {
	t.Helper()
	r, ok := errors.AsType[*loadcontrol.Refusal](err)
	if !ok {
		t.Fatalf("error %v, want a refusal", err)
	}
	return r
}

// Endpoint is a client's UDP socket at an address, that is read until the test ends.
func Endpoint(t *testing.T, local netip.Addr) *stream.Endpoint {
	t.Helper()
	e, err := stream.Open(stream.Options{Local: netip.AddrPortFrom(local, 0)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(context.Background()) }()
	t.Cleanup(func() {
		e.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return e
}

// Plan is 100 packets of 500 bytes, 1 ms apart.
func Plan() stream.Plan {
	return stream.Plan{Segments: []stream.Segment{{PayloadBytes: 500, Burst: 1, Bursts: 100, Interval: time.Millisecond}}}
}
