// Package await waits in tests: it polls a condition that another goroutine or process changes without a notification, and runs a
// server until the test ends.
package await

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// Timeout is the limit for any condition. It only matters when a test fails. A disk that writes what builds and containers have left in the
// page cache can hold each fsync for a minute.
const Timeout = 2 * time.Minute

// pause is the least time between two checks, longest the most, and rests how many times as long as the check that is: one that costs
// much, such as a scrape, leaves the processors to what it waits for.
const (
	pause   = 5 * time.Millisecond
	longest = 100 * time.Millisecond
	rests   = 10
)

// TB is the part of testing.TB that That uses.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Within checks f until it is true, at most for limit, and reports whether it was.
func Within(limit time.Duration, f func() bool) bool {
	for begin, end := time.Now(), time.Now().Add(limit); !f(); begin = time.Now() {
		now := time.Now()
		if now.After(end) {
			return false
		}
		time.Sleep(min(max(pause, rests*now.Sub(begin)), longest)) // the poll's interval
	}
	return true
}

// That checks f until it is true; the test fails after Timeout. Then it prints more, such as a log.
func That(t TB, what string, f func() bool, more ...any) {
	t.Helper()
	if !Within(Timeout, f) {
		t.Fatalf("%s: not true within %v\n%s", what, Timeout, fmt.Sprint(more...))
	}
}

// Server runs until its context ends. Started is closed when it serves.
type Server interface {
	Run(ctx context.Context) error
	Started() <-chan struct{}
}

// Serving runs a server, and returns when it serves. stop and the end of the test end it; the test fails after an error of Run.
func Serving(t testing.TB, s Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Started():
	case err := <-ended:
		cancel()
		t.Fatalf("Run: %v", err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Text is text that one goroutine writes and others read concurrently, such as a log. The zero value is empty.
type Text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write is io.Writer.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// String is the text so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}
