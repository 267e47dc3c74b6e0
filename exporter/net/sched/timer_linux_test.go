package sched

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestNowAgreesWithTheKernel(t *testing.T) {
	for range 100 {
		before := Now()
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		after := Now()
		const anchored = 10 * time.Millisecond // the thread may be preempted between the two readings at the start
		if kernel := time.Duration(ts.Nano()); kernel < before-anchored || kernel > after+anchored {
			t.Fatalf("the kernel's clock is %v between Now %v and %v", kernel, before, after)
		}
	}
}

// countedTimer counts its wake-ups.
type countedTimer struct {
	timer
	woke atomic.Int64
}

func (c *countedTimer) wait(until time.Duration) error {
	defer c.woke.Add(1)
	return c.timer.wait(until)
}

// TestIdlePacerDoesNotWake detects periodic polling.
func TestIdlePacerDoesNotWake(t *testing.T) {
	kernel, err := newTimer()
	if err != nil {
		t.Fatal(err)
	}
	counted := &countedTimer{timer: kernel}
	p := newPacer(counted)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	fired := make(chan struct{})
	p.Add(TaskFunc(func(_, _ time.Duration) time.Duration { close(fired); return Stop }), 1)
	<-fired
	time.Sleep(100 * time.Millisecond) // until the pacer sleeps
	before := counted.woke.Load()
	time.Sleep(500 * time.Millisecond) // real time: the test observes the kernel
	if after := counted.woke.Load(); after != before {
		t.Errorf("woke up %d times while idle, want 0", after-before)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
