package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"

	"oneway.example/exporter/core/ctxtime"
)

// jsonLog writes values to a file, one a line. put takes them at once; they are
// encoded and written in the background.
type jsonLog struct {
	file *os.File

	mu      sync.Mutex
	waiting []any
}

// openShared opens a file that the host reads while it is written: without O_SYNC
// what is written stays in the guest's page cache.
func openShared(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_SYNC, 0o644)
}

func openLog(file string) (*jsonLog, error) {
	f, err := openShared(file)
	return &jsonLog{file: f}, err
}

func (l *jsonLog) put(v any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, v)
}

// keep writes until ctx ends, and once more.
func (l *jsonLog) keep(ctx context.Context) {
	for going := true; going; {
		going = ctxtime.Sleep(ctx, flushEvery)
		l.mu.Lock()
		values := l.waiting
		l.waiting = nil
		l.mu.Unlock()
		var lines []byte
		for _, v := range values {
			line, err := json.Marshal(v)
			if err != nil {
				continue // a NaN: the host misses the line
			}
			lines = append(append(lines, line...), '\n')
		}
		if _, err := l.file.Write(lines); err != nil {
			return
		}
	}
}
