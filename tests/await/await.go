// Package await is for tests of what another goroutine or another process does: what changes there tells
// nobody, so it is asked again and again. A limit is there for a test that has failed.
package await

import (
	"bytes"
	"fmt"
	"sync"
	"time"
)

// Timeout is how long anything may take that is only waited for.
const Timeout = 45 * time.Second

// pause is between two requests.
const pause = 5 * time.Millisecond

// TB is what That needs of testing.TB.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Within asks until f holds, for so long at the most, and reports whether it did.
func Within(limit time.Duration, f func() bool) bool {
	for end := time.Now().Add(limit); !f(); time.Sleep(pause) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// That asks until f holds; the test fails if that takes longer than Timeout. What stands behind f,
// such as a log, is printed then.
func That(t TB, what string, f func() bool, more ...any) {
	t.Helper()
	if !Within(Timeout, f) {
		t.Fatalf("%s: not after %v\n%s", what, Timeout, fmt.Sprint(more...))
	}
}

// Text is what is written by one goroutine and read by others meanwhile: a log, what a program says. The zero value is empty.
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

// String is all of it so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}
