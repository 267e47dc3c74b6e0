package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

// What reads the log stops reading: logging goes on without it, keeps the first lines in their order, drops those that exceed the
// limit, and tells their number when it is read again.
func TestLogThatNobodyReadsBlocksNothing(t *testing.T) {
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer written.Close()
	log, flush := newLog(written, func(out io.Writer) slog.Handler { return slog.NewTextHandler(out, nil) })
	const lines = 4000
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		for i := range lines {
			log.Info("line", "number", i, "text", strings.Repeat("x", 100))
		}
		flush()
	}()
	select {
	case <-logged:
	case <-time.After(time.Minute):
		t.Fatal("the log blocks")
	}
	if err := read.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	kept, dropped := 0, 0
	for in := bufio.NewScanner(read); dropped == 0 && in.Scan(); {
		if _, after, told := strings.Cut(in.Text(), " lines="); told {
			if _, err := fmt.Sscan(after, &dropped); err != nil {
				t.Fatal(err)
			}
			break
		}
		if !strings.Contains(in.Text(), fmt.Sprintf("msg=line number=%d ", kept)) {
			t.Fatalf("line %d: %s", kept, in.Text())
		}
		kept++
	}
	if kept == 0 || dropped == 0 || kept+dropped != lines {
		t.Errorf("%d lines kept and %d dropped, of %d", kept, dropped, lines)
	}
}
