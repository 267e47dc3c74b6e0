package clocktest

import (
	"bytes"
	"strings"
	"sync"
)

// Log keeps what a monitor logs.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write is io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Count is how often a message is in what is kept.
func (l *Log) Count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), message)
}

// Take is what was logged since the last time.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}
