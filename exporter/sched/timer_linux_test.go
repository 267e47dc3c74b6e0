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
		const anchored = 10 * time.Millisecond // between the two readings at the start the thread may lose its processor
		if kernel := time.Duration(ts.Nano()); kernel < before-anchored || kernel > after+anchored {
			t.Fatalf("the kernel says %v between %v and %v", kernel, before, after)
		}
	}
}

// countedTimer counts how often it wakes up.
type countedTimer struct {
	timer
	woke atomic.Int64
}

func (c *countedTimer) wait(until time.Duration) error {
	defer c.woke.Add(1)
	return c.timer.wait(until)
}

// TestIdlePacerDoesNotWake: a poll that comes round on its own would show.
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
	time.Sleep(100 * time.Millisecond) // let it fall asleep
	before := counted.woke.Load()
	time.Sleep(500 * time.Millisecond) // real time: it is the kernel that is watched
	if after := counted.woke.Load(); after != before {
		t.Errorf("woke up %d times while idle", after-before)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
