// Package farside has what tests of a load test's far end have in common: those of the life of a
// session (package responder) and those of its traffic.
package farside

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/stream"
	"oneway.example/tests/await"
)

// Patience is how long Eventually waits: half of what a stream lasts that does not stop.
const Patience = 20 * time.Second

// Eventually waits for something that another goroutine brings about.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !await.Within(Patience, ok) {
		t.Fatalf("%s: not within %v", what, Patience)
	}
}

// NothingLeft fails the test if anything of it is running when all its clean-ups are done.
func NothingLeft(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		if !await.Within(Patience, func() bool { return runtime.NumGoroutine() <= before }) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
	})
}

// Refusal is the one in an error; it fails the test if there is none.
func Refusal(t *testing.T, err error) *control.Refusal {
	t.Helper()
	r, ok := errors.AsType[*control.Refusal](err)
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

// Plan is 100 packets of 500 octets, 1 ms apart.
func Plan() stream.Plan {
	return stream.Plan{Segments: []stream.Segment{{PayloadBytes: 500, Burst: 1, Bursts: 100, Interval: time.Millisecond}}}
}
