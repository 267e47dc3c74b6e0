//go:build !linux

package sched

import (
	"bytes"
	"runtime"
	"time"
)

// plainTimer is the fallback: as late as Go's timers are.
type plainTimer struct{ woken chan struct{} }

func newTimer() (timer, error) { return &plainTimer{make(chan struct{}, 1)}, nil }

func (t *plainTimer) now() time.Duration { return Now() }
func (t *plainTimer) leave()             {}

func (t *plainTimer) wait(until time.Duration) error {
	if until == forever {
		<-t.woken
		return nil
	}
	alarm := time.NewTimer(until - Now())
	defer alarm.Stop()
	select {
	case <-alarm.C:
	case <-t.woken:
	}
	return nil
}

func (t *plainTimer) wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

// thread is the goroutine here: the head of its stack trace ("goroutine 7 [...").
// Slow, but asked for only when a task is removed while it fires.
type thread struct{ id string }

func currentThread() thread {
	var buffer [64]byte
	head := buffer[:runtime.Stack(buffer[:], false)]
	if i := bytes.IndexByte(head, '['); i > 0 {
		head = head[:i]
	}
	return thread{string(head)}
}

func (t thread) isCurrent() bool { return t.id != "" && t == currentThread() }
