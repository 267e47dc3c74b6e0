package main

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"

	"oneway.example/exporter/core/errtext"
)

// newLog returns the log of a command that serves, whose lines handler writes to out, and what waits for the last ones.
func newLog(out io.Writer, handler func(io.Writer) slog.Handler) (log *slog.Logger, flush func()) {
	w := &logWriter{out: out}
	log = slog.New(errtext.Handler{Handler: handler(w)})
	w.report = func(lines int) {
		log.Warn("Lines of the log were dropped: what reads standard error did not read for a time", "lines", lines)
	}
	return log, w.flush
}

// logWriter writes the lines of a log to a file whose reader may stop reading: a log driver or a journal that waits for its disk, a
// terminal after Ctrl-S. The process goes on then: lines wait, and are dropped beyond mostLogBytes.
type logWriter struct {
	out io.Writer
	// report tells how many lines were dropped.
	report func(lines int)

	mu      sync.Mutex
	waiting [][]byte
	bytes   int // of waiting
	dropped int
	// written is closed when no line waits any longer, and then nil.
	written chan struct{}
	blocked bool
}

const (
	// logTimeout is how long a line is waited for, before the lines after it are not.
	logTimeout = 100 * time.Millisecond
	// mostLogBytes is the limit of the lines that wait.
	mostLogBytes = 64 << 10
	// lastLines is how long the end of a command waits for the last lines.
	lastLines = time.Second
)

// Write writes one line. It returns before that while the reader does not read.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	if w.bytes+len(line) > mostLogBytes && len(w.waiting) > 0 {
		w.dropped++
		w.mu.Unlock()
		return len(line), nil
	}
	w.waiting, w.bytes = append(w.waiting, bytes.Clone(line)), w.bytes+len(line)
	if w.written == nil {
		w.written = make(chan struct{})
		go w.write()
	}
	blocked := w.blocked
	w.mu.Unlock()
	if !blocked {
		w.wait(logTimeout)
	}
	return len(line), nil
}

// wait waits until no line waits, at most for this time.
func (w *logWriter) wait(limit time.Duration) {
	w.mu.Lock()
	written := w.written
	w.mu.Unlock()
	if written == nil {
		return
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-written:
	case <-timeout.C:
		w.mu.Lock()
		w.blocked = w.written == written
		w.mu.Unlock()
	}
}

// flush waits for the last lines.
func (w *logWriter) flush() { w.wait(lastLines) }

// write writes the lines that wait.
func (w *logWriter) write() {
	for {
		w.mu.Lock()
		if len(w.waiting) == 0 {
			if n := w.dropped; n > 0 {
				go w.report(n)
			}
			close(w.written)
			w.written, w.blocked, w.bytes, w.dropped = nil, false, 0, 0
			w.mu.Unlock()
			return
		}
		line := w.waiting[0]
		w.waiting = w.waiting[1:]
		w.mu.Unlock()
		_, _ = w.out.Write(line) // there is no other place for this error
		w.mu.Lock()
		w.bytes -= len(line)
		w.mu.Unlock()
	}
}
